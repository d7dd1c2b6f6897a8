import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import Testing

/// Sections 4 and 5.2.1 of RFC 9111: what a request accepts, and what is asked of the origin.
struct HTTPRequestTests {
    private let fresh = [("Cache-Control", "max-age=60"), ("ETag", "\"a\"")]

    /// Gives a request that has begun the time to wait for another one.
    ///
    /// Without it the tests pass, and show less.
    private static func letOthersJoin() async { for _ in 0..<1000 { await Task.yield() } }

    @Test func `no-cache asks the origin, with what is stored as its condition`() async throws {
        for field in [("Cache-Control", "no-cache"), ("Pragma", "no-cache"), ("Cache-Control", "max-age=0")] {
            let bench = try await HTTPBench()
            bench.answer(200, fresh)
            bench.answer(304, [("ETag", "\"a\""), ("Cache-Control", "max-age=120"), ("X", "new")])
            _ = try await bench.get()
            let response = try await bench.get("/page", [field])
            #expect(response.status == 200 && response.text == "body 0" && response.field("X") == "new")
            #expect(bench.requests.value.last?.field("If-None-Match") == "\"a\"")
            #expect(response.outcome.contains("fwd-status=304"))
            bench.wait(100)
            #expect(try await bench.get().text == "body 0" && bench.sent == 2)
        }
    }

    @Test func `max-age, min-fresh and max-stale bound what is accepted`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=60")], "one")
        _ = try await bench.get()
        bench.wait(30)
        #expect(try await bench.get("/page", [("Cache-Control", "max-age=40")]).text == "one")
        #expect(try await bench.get("/page", [("Cache-Control", "min-fresh=20")]).text == "one")
        await #expect(throws: HTTPBench.Lost.self) {
            _ = try await bench.get("/page", [("Cache-Control", "max-age=20")])
        }
        await #expect(throws: HTTPBench.Lost.self) {
            _ = try await bench.get("/page", [("Cache-Control", "min-fresh=40")])
        }
        bench.wait(60)
        #expect(try await bench.get("/page", [("Cache-Control", "max-stale")]).text == "one")
        #expect(try await bench.get("/page", [("Cache-Control", "max-stale=40")]).text == "one")
        await #expect(throws: HTTPBench.Lost.self) {
            _ = try await bench.get("/page", [("Cache-Control", "max-stale=20")])
        }
        #expect(bench.http.statistics.stale == 2)
    }

    @Test func `a response that needs the origin for each use is asked for by each request that waits`() async throws {
        for (directive, count) in [("no-cache", 3), ("max-age=0, must-revalidate", 3), ("max-age=60", 1)] {
            let (calls, asked, gate) = (Counter(), Counter(), LoadGate())
            let bench = try await HTTPBench(
                HTTPOptions(
                    isShared: true,
                    partition: { _ in
                        calls.increment()
                        return ""
                    }))
            @Sendable func send(_ request: HTTPRequest) async throws -> HTTPResponse {
                asked.increment()
                try await gate.waitInTask()
                let body = Data((request.field("Cookie") ?? "").utf8)
                return HTTPResponse(status: 200, fields: [("Cache-Control", directive), ("ETag", "\"a\"")], body: body)
            }
            let url = try #require(URL(string: "https://example.org/account"))
            let responses = (0..<3).map { user in
                Task {
                    try await bench.http.response(
                        for: HTTPRequest(url, fields: [("Cookie", "\(user)")]), send: send)
                }
            }
            try await Waiting.until { asked.value == 1 && calls.value == 3 }
            await Self.letOthersJoin()
            gate.open()
            var bodies: Set<Data> = []
            for response in responses { bodies.insert(try await response.value.body) }
            #expect(asked.value == count && bodies.count == count, "\(directive)")
        }
    }

    @Test func `a client that asks the cache for the response that it is to give gets one`() async throws {
        let bench = try await HTTPBench()
        let url = try #require(URL(string: "https://example.org/a"))
        let response = try await bench.http.response(for: HTTPRequest(url)) { request in
            try await bench.http.response(for: request) { _ in
                HTTPResponse(status: 200, fields: [("Cache-Control", "max-age=60")], body: Data("end".utf8))
            }
        }
        #expect(response.body == Data("end".utf8))
    }

    @Test func `what was removed while another request was on its way does not come back`() async throws {
        let calls = Counter()
        let bench = try await HTTPBench(
            HTTPOptions(partition: { _ in
                calls.increment()
                return ""
            }))
        bench.answer(200, [("Cache-Control", "max-age=1"), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")], "old")
        _ = try await bench.get()
        bench.wait(10)
        let url = try #require(URL(string: "https://example.org/page"))
        let (gate, conditions) = (LoadGate(), Locked<[String?]>([]))
        @Sendable func send(_ request: HTTPRequest) async throws -> HTTPResponse {
            conditions.change { $0.append(request.field("If-Modified-Since")) }
            if conditions.value.count == 1 { try await gate.waitInTask() }
            let fields = [("Cache-Control", "max-age=60"), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]
            if request.field("If-Modified-Since") != nil {
                return HTTPResponse(status: 304, fields: fields, body: Data())
            }
            return HTTPResponse(status: 200, fields: fields, body: Data("new".utf8))
        }
        let first = Task { try await bench.http.response(for: HTTPRequest(url), send: send) }
        try await Waiting.until { conditions.value.count == 1 }
        let second = Task { try await bench.http.response(for: HTTPRequest(url), send: send) }
        try await Waiting.until { calls.value == 3 }
        await Self.letOthersJoin()
        try await bench.http.remove(HTTPRequest(url))
        gate.open()
        _ = try await first.value
        #expect(try await second.value.body == Data("new".utf8))
        #expect(try await bench.http.response(for: HTTPRequest(url), send: send).body == Data("new".utf8))
    }

    @Test func `an answer to a condition of the request is for that request alone`() async throws {
        let bench = try await HTTPBench()
        bench.answer(412, [("Cache-Control", "max-age=60")], "no")
        bench.answer(200, [("Cache-Control", "max-age=60")], "yes")
        #expect(try await bench.get("/page", [("If-Match", "\"old\"")]).status == 412)
        #expect(try await bench.get().text == "yes")
    }

    @Test func `of two directives the stricter one holds`() async throws {
        let bench = try await HTTPBench(HTTPOptions(isShared: true))
        bench.answer(200, [("Cache-Control", "private=\"X-Id\""), ("Cache-Control", "private, max-age=60")], "one")
        bench.answer(200, [("Cache-Control", "no-cache=\"X-Id\", no-cache, max-age=60"), ("ETag", "\"a\"")], "two")
        bench.answer(304, [("ETag", "\"a\"")])
        #expect(try await bench.get().text == "one")
        #expect(try await bench.get().text == "two")
        #expect(try await bench.get().text == "two" && bench.sent == 3)
    }

    @Test func `what must be revalidated is never served stale`() async throws {
        for directive in ["must-revalidate", "no-cache"] {
            let bench = try await HTTPBench(HTTPOptions(staleIfError: .seconds(1000)))
            bench.answer(200, [("Cache-Control", "max-age=1, stale-if-error=100, \(directive)")])
            _ = try await bench.get()
            bench.wait(2)
            await #expect(throws: HTTPBench.Lost.self) {
                _ = try await bench.get("/page", [("Cache-Control", "max-stale")])
            }
        }
    }

    @Test func `only-if-cached gets a 504 if nothing can be served`() async throws {
        let bench = try await HTTPBench()
        #expect(try await bench.get("/page", [("Cache-Control", "only-if-cached")]).status == 504)
        bench.answer(200, fresh)
        _ = try await bench.get()
        #expect(try await bench.get("/page", [("Cache-Control", "only-if-cached")]).text == "body 0")
        #expect(bench.sent == 1)
    }

    @Test func `no-store goes past the cache`() async throws {
        let bench = try await HTTPBench()
        for _ in 0..<2 { bench.answer(200, fresh) }
        #expect(try await bench.get("/page", [("Cache-Control", "no-store")]).text == "body 0")
        #expect(try await bench.get().text == "body 1" && bench.http.statistics.passedBy == 1)
    }

    @Test func `a reload asks for nothing that cannot change`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=60, immutable"), ("ETag", "\"a\"")])
        bench.answer(304, [("ETag", "\"a\"")])
        _ = try await bench.get()
        #expect(try await bench.get("/page", [("Cache-Control", "max-age=0")]).text == "body 0" && bench.sent == 1)
        bench.wait(61)
        _ = try await bench.get("/page", [("Cache-Control", "max-age=0")])
        #expect(bench.sent == 2)
    }

    // MARK: Validation

    @Test(arguments: [
        ("ETag", "\"a\"", "If-None-Match"), ("ETag", "W/\"a\"", "If-None-Match"),
        ("Last-Modified", "", "If-Modified-Since"),
    ])
    func `a stale response is validated, and fresh again`(name: String, value: String, condition: String) async throws {
        let bench = try await HTTPBench()
        let value = value.isEmpty ? bench.date(-1000) : value
        bench.answer(200, [("Cache-Control", "max-age=1"), (name, value), ("X", "old"), ("Content-Length", "6")])
        bench.answer(304, [("Cache-Control", "max-age=60"), (name, value), ("X", "new"), ("Content-Length", "0")])
        _ = try await bench.get()
        bench.wait(2)
        for _ in 0..<2 {
            let response = try await bench.get()
            #expect(response.status == 200 && response.text == "body 0" && response.field("X") == "new")
            #expect(response.field("Content-Length") == "6")
        }
        #expect(bench.sent == 2 && bench.requests.value[1].field(condition) == value)
        #expect(bench.http.statistics.revalidated == 1)
    }

    @Test func `a 304 about another response is not believed`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=1"), ("ETag", "\"a\"")])
        bench.answer(304, [("ETag", "\"b\"")])
        bench.answer(200, [("ETag", "\"b\"")])
        _ = try await bench.get()
        bench.wait(2)
        #expect(try await bench.get().text == "body 2")
        #expect(bench.requests.value[2].field("If-None-Match") == nil)
    }

    @Test func `who has what is stored gets a 304`() async throws {
        let bench = try await HTTPBench()
        let modified = bench.date(-1000)
        bench.answer(200, fresh + [("Last-Modified", modified), ("Content-Type", "text/plain")])
        _ = try await bench.get()
        for tags in ["\"a\"", "\"x\", \"a\"", "W/\"a\"", "*"] {
            let response = try await bench.get("/page", [("If-None-Match", tags)])
            #expect(response.status == 304 && response.body.isEmpty && response.field("ETag") == "\"a\"")
        }
        #expect(try await bench.get("/page", [("If-Modified-Since", modified)]).status == 304)
        #expect(try await bench.get("/page", [("If-Modified-Since", bench.date(-500))]).status == 304)
        #expect(try await bench.get("/page", [("If-Modified-Since", bench.date(-2000))]).status == 200)
        // A tag says more than a date.
        let both = [("If-None-Match", "\"x\""), ("If-Modified-Since", modified)]
        #expect(try await bench.get("/page", both).text == "body 0" && bench.sent == 1)
    }

    @Test func `without anything stored a condition goes to the origin as it is`() async throws {
        let bench = try await HTTPBench()
        bench.answer(304, [("ETag", "\"a\"")])
        bench.answer(200, fresh)
        #expect(try await bench.get("/page", [("If-None-Match", "\"a\"")]).status == 304)
        #expect(bench.requests.value[0].field("If-None-Match") == "\"a\"")
        #expect(try await bench.get().text == "body 1")
    }

    @Test func `a stale response is validated for one who has it`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=1"), ("ETag", "\"a\"")])
        bench.answer(304, [("ETag", "\"a\""), ("Cache-Control", "max-age=60")])
        _ = try await bench.get()
        bench.wait(2)
        #expect(try await bench.get("/page", [("If-None-Match", "\"a\"")]).status == 304)
        #expect(try await bench.get().text == "body 0" && bench.sent == 2)
    }

    // MARK: Failures of the origin

    @Test func `stale-if-error serves what is stored if the origin fails, for its time`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=1, stale-if-error=60")])
        bench.answer(503)
        _ = try await bench.get()
        bench.wait(2)
        #expect(try await bench.get().text == "body 0")
        let response = try await bench.get()
        #expect(response.text == "body 0" && response.outcome.contains("stale-if-error"))
        bench.wait(60)
        await #expect(throws: HTTPBench.Lost.self) { _ = try await bench.get() }
    }

    @Test func `without a word of it an error is an error, unless the options say otherwise`() async throws {
        for (options, isServed) in [(HTTPOptions(), false), (HTTPOptions(staleIfError: .seconds(60)), true)] {
            let bench = try await HTTPBench(options)
            bench.answer(200, [("Cache-Control", "max-age=1")])
            bench.answer(503, [], "down")
            _ = try await bench.get()
            bench.wait(2)
            #expect(try await bench.get().text == (isServed ? "body 0" : "down"))
        }
    }

    @Test func `stale-while-revalidate serves what is stored, and asks in the background`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=1, stale-while-revalidate=60")])
        bench.answer(200, [("Cache-Control", "max-age=60")], "new")
        _ = try await bench.get()
        bench.wait(2)
        #expect(try await bench.get().text == "body 0")
        try await Waiting.asking { try await bench.get().text == "new" }
        #expect(bench.sent == 2)
    }

    @Test func `a refresh in the background whose origin fails counts as nothing`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=1, stale-while-revalidate=60, stale-if-error=60")])
        bench.answer(503)
        bench.answer(200, fresh, "new")
        _ = try await bench.get()
        bench.wait(2)
        #expect(try await bench.get().text == "body 0")
        try await Waiting.until { bench.sent == 2 }
        bench.wait(60)
        #expect(try await bench.get().text == "new" && bench.http.statistics.stale == 1)
    }

    // MARK: Methods

    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"])
    func `a method that changes something removes what it may have changed`(method: String) async throws {
        let bench = try await HTTPBench()
        for path in ["/page", "/a", "/b", "https://other.example/c"] {
            bench.answer(200, fresh, path)
            _ = try await bench.get(path)
        }
        bench.answer(500)
        _ = try await bench.get("/page", method: method)
        #expect(try await bench.get().text == "/page")
        bench.answer(201, [("Location", "/a"), ("Content-Location", "https://example.org/b")])
        _ = try await bench.get("/page", method: method)
        for path in ["/page", "/a", "/b"] {
            bench.answer(200, fresh, "new")
            #expect(try await bench.get(path).text == "new")
        }
        bench.answer(201, [("Location", "https://other.example/c")])
        _ = try await bench.get("/page", method: method)
        #expect(try await bench.get("https://other.example/c").text == "https://other.example/c")
        // Neither is another port or scheme one of the same origin.
        bench.answer(201, [("Location", "https://example.org/a")])
        _ = try await bench.get("http://example.org/page", method: method)
        #expect(try await bench.get("/a").text == "new")
    }

    @Test func `HEAD is answered from what is stored, and updates it`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=10"), ("ETag", "\"a\""), ("Content-Length", "6")])
        _ = try await bench.get()
        let head = try await bench.get(method: "HEAD")
        #expect(head.body.isEmpty && head.field("Content-Length") == "6" && bench.sent == 1)
        bench.wait(11)
        bench.answer(
            200, [("Cache-Control", "max-age=60"), ("ETag", "\"a\""), ("Content-Length", "6"), ("X", "new")], "")
        _ = try await bench.get(method: "HEAD")
        let response = try await bench.get()
        #expect(response.text == "body 0" && response.field("X") == "new" && bench.sent == 2)
        // Another tag: what is stored is old.
        bench.answer(200, [("Cache-Control", "max-age=60"), ("ETag", "\"b\"")], "")
        _ = try await bench.get("/page", [("Cache-Control", "no-cache")], method: "HEAD")
        bench.answer(200, [("ETag", "\"b\"")], "third")
        #expect(try await bench.get().text == "third")
    }

    @Test func `a HEAD about another answer makes what is stored stale`() async throws {
        let bench = try await HTTPBench()
        bench.answer(404, [("Cache-Control", "max-age=1")], "none")
        _ = try await bench.get()
        bench.wait(2)
        bench.answer(200, [("Cache-Control", "max-age=60")], "")
        _ = try await bench.get(method: "HEAD")
        bench.answer(200, [], "there")
        #expect(try await bench.get().text == "there")
    }

    // MARK: Ranges

    @Test func `parts are cut from a whole response`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, fresh, "0123456789")
        _ = try await bench.get()
        for (range, part, place) in [
            ("bytes=0-1", "01", "0-1"), ("bytes=1-", "123456789", "1-9"), ("bytes=-3", "789", "7-9"),
            ("bytes=8-99", "89", "8-9"),
        ] {
            let response = try await bench.get("/page", [("Range", range)])
            #expect(response.status == 206 && response.text == part)
            #expect(response.field("Content-Range") == "bytes \(place)/10")
            #expect(response.field("Content-Length") == "\(part.count)")
        }
        #expect(try await bench.get("/page", [("Range", "bytes=10-")]).status == 416)
        for range in ["bytes=0-1,3-4", "lines=1-2", "bytes=4-2", "bytes=x"] {
            #expect(try await bench.get("/page", [("Range", range)]).text == "0123456789")
        }
        #expect(try await bench.get("/page", [("Range", "bytes=0-1"), ("If-Range", "\"a\"")]).text == "01")
        #expect(try await bench.get("/page", [("Range", "bytes=0-1"), ("If-Range", "\"b\"")]).status == 200)
        #expect(bench.sent == 1)
    }

    @Test func `a part that the origin sends is passed on`() async throws {
        let bench = try await HTTPBench()
        bench.answer(206, fresh + [("Content-Range", "bytes 0-1/10")], "01")
        bench.answer(200, fresh, "0123456789")
        #expect(try await bench.get("/page", [("Range", "bytes=0-1")]).status == 206)
        #expect(try await bench.get().text == "0123456789")
    }

    // MARK: Many at once

    @Test func `a thousand requests at once are one for the origin`() async throws {
        let bench = try await HTTPBench()
        let gate = LoadGate()
        bench.answers.change {
            $0[0] = { _ in
                try await gate.waitInTask()
                return HTTPResponse(status: 200, fields: [("Cache-Control", "max-age=60")], body: Data("one".utf8))
            }
        }
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<1000 { group.addTask { try await bench.get().text } }
            gate.open()
            for try await text in group { #expect(text == "one") }
        }
        #expect(bench.sent == 1)
    }

    @Test func `what may not be shared is asked for by each`() async throws {
        let bench = try await HTTPBench()
        let gate = LoadGate()
        for number in 0..<3 {
            bench.answers.change {
                $0[number] = { _ in
                    if number == 0 { try await gate.waitInTask() }
                    return HTTPResponse(
                        status: 200, fields: [("Cache-Control", "no-store")], body: Data("\(number)".utf8))
                }
            }
        }
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            group.addTask { try await bench.get().text }
            try await Waiting.until { bench.sent == 1 }
            for _ in 0..<2 { group.addTask { try await bench.get().text } }
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(texts.sorted() == ["0", "1", "2"])
    }

    @Test func `the one who asks may be cancelled, and another one asks`() async throws {
        let bench = try await HTTPBench()
        bench.answers.change {
            $0[0] = { _ in
                while !Task.isCancelled { await Task.yield() }
                // What a client throws of its own.
                throw HTTPBench.Lost()
            }
        }
        let first = Task { try await bench.get().text }
        try await Waiting.until { bench.sent == 1 }
        bench.answer(200, [("Cache-Control", "max-age=60")], "two")
        async let second = bench.get().text
        first.cancel()
        #expect(try await second == "two")
        await #expect(throws: HTTPBench.Lost.self) { _ = try await first.value }
    }
}
