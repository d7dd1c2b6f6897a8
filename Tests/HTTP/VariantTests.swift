import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import LarderTesting
import Testing

/// Section 4.1 of RFC 9111, and what else parts responses from each other: users, partitions, hosts.
struct VariantTests {
    private func vary(_ names: String) -> [(String, String)] { [("Cache-Control", "max-age=60"), ("Vary", names)] }

    @Test func `each set of values has a response of its own`() async throws {
        let bench = try await HTTPBench()
        let requests: [[(String, String)]] = [
            [("Foo", "1")], [("Foo", "2")], [], [("Foo", "1"), ("Bar", "x")], [("Foo", "1"), ("Bar", "y")],
        ]
        for number in requests.indices { bench.answer(200, vary("Foo, bar"), "\(number)") }
        for (number, fields) in requests.enumerated() {
            #expect(try await bench.get("/page", fields).text == "\(number)")
        }
        for (number, fields) in requests.enumerated() {
            #expect(try await bench.get("/page", fields).text == "\(number)")
        }
        #expect(try await bench.get("/page", [("bar", "x"), ("Other", "z"), ("foo", "1")]).text == "3")
        #expect(bench.sent == requests.count)
    }

    @Test(arguments: [
        "http:/example.org/page", "data:text/plain,a", "file:///example.org/page", "/page#http://example.org",
    ])
    func `a URL without a host is passed by`(text: String) async throws {
        let bench = try await HTTPBench()
        for _ in 0..<2 { bench.answer(200, vary("Foo")) }
        let request = HTTPRequest(try #require(URL(string: text)))
        for number in 0..<2 { #expect(try await bench.ask(request).text == "body \(number)") }
        #expect(bench.http.statistics.passedBy == 2)
    }

    @Test func `a request that does not accept what is fresh says so`() async throws {
        let bench = try await HTTPBench()
        for _ in 0..<3 { bench.answer(200, [("Cache-Control", "max-age=60")]) }
        let reload = [("Cache-Control", "no-cache")]
        #expect(try await bench.get("/page", reload).outcome.contains("fwd=uri-miss"))
        #expect(try await bench.get("/page", reload).outcome.contains("fwd=request"))
        bench.wait(10)
        #expect(try await bench.get("/page", [("Cache-Control", "max-age=5")]).outcome.contains("fwd=request"))
    }

    @Test func `a request for another variant says so`() async throws {
        let bench = try await HTTPBench()
        for _ in 0..<2 { bench.answer(200, vary("Foo")) }
        #expect(try await bench.get("/page", [("Foo", "1")]).outcome == "Larder; fwd=uri-miss; fwd-status=200; stored")
        #expect(try await bench.get("/page", [("Foo", "2")]).outcome == "Larder; fwd=vary-miss; fwd-status=200; stored")
    }

    @Test func `what changes no meaning is one value`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, vary("Foo, Accept-Language"), "one")
        _ = try await bench.get("/page", [("Foo", "1, 2"), ("Accept-Language", "en, de")])
        for fields in [
            [("Foo", " 1 ,2"), ("Accept-Language", "EN,de")],
            [("Foo", "1"), ("Foo", "2"), ("Accept-Language", "en, de")],
        ] { #expect(try await bench.get("/page", fields).text == "one") }
        await #expect(throws: HTTPBench.Lost.self) {
            _ = try await bench.get("/page", [("Foo", "2, 1"), ("Accept-Language", "en, de")])
        }
    }

    @Test func `of a URL as many sets of names are known as the options say`() async throws {
        let bench = try await HTTPBench(HTTPOptions(variantLimit: 2))
        for number in 0..<4 { bench.answer(200, vary("F\(number)"), "\(number)") }
        for number in 0..<4 {
            _ = try await bench.get("/page", [("F\(number)", "x"), ("G", "\(number)"), ("Cache-Control", "no-cache")])
        }
        #expect(try await bench.get("/page", [("F3", "x")]).text == "3")
        #expect(try await bench.get("/page", [("F2", "x")]).text == "2")
        await #expect(throws: HTTPBench.Lost.self) { _ = try await bench.get("/page", [("F1", "x")]) }
    }

    @Test func `a stale variant is validated with the fields of its request`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=1"), ("ETag", "\"a\""), ("Vary", "Foo")])
        bench.answer(304, [("ETag", "\"a\""), ("Cache-Control", "max-age=60")])
        bench.answer(200, vary("Foo"), "other")
        _ = try await bench.get("/page", [("Foo", "1")])
        bench.wait(2)
        #expect(try await bench.get("/page", [("Foo", "1")]).text == "body 0")
        #expect(bench.requests.value[1].field("Foo") == "1")
        #expect(try await bench.get("/page", [("Foo", "2")]).text == "other")
        #expect(bench.requests.value[2].field("If-None-Match") == nil)
        #expect(try await bench.get("/page", [("Foo", "1")]).text == "body 0" && bench.sent == 3)
    }

    @Test func `no one gets what was for another user`() async throws {
        let bench = try await HTTPBench()
        for text in ["all", "ann", "bob"] { bench.answer(200, [("Cache-Control", "max-age=60")], text) }
        let users: [[(String, String)]] = [[], [("Authorization", "ann")], [("Authorization", "bob")]]
        for _ in 0..<2 {
            for (user, text) in zip(users, ["all", "ann", "bob"]) {
                #expect(try await bench.get("/page", user).text == text)
            }
        }
        #expect(bench.sent == 3)
        // The store does not name them.
        for key in try await bench.keys() { #expect(!key.contains("ann") && !key.contains("bob")) }
    }

    @Test func `what is public is for every user`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "public, max-age=60")], "all")
        for user in ["ann", "bob"] { #expect(try await bench.get("/page", [("Authorization", user)]).text == "all") }
        #expect(try await bench.get().text == "all" && bench.sent == 1)
    }

    @Test func `each partition has responses of its own`() async throws {
        let bench = try await HTTPBench(HTTPOptions(partition: { $0.field("User") ?? "" }))
        for text in ["ann", "bob"] { bench.answer(200, [("Cache-Control", "max-age=60")], text) }
        for _ in 0..<2 {
            for user in ["ann", "bob"] { #expect(try await bench.get("/page", [("User", user)]).text == user) }
        }
        bench.answer(204)
        _ = try await bench.get("/page", [("User", "ann")], method: "DELETE")
        #expect(try await bench.get("/page", [("User", "bob")]).text == "bob" && bench.sent == 3)
    }

    @Test func `a partition has all its URLs`() async throws {
        let bench = try await HTTPBench(HTTPOptions(partition: { _ in "ann" }))
        for text in ["a", "b", "c"] { bench.answer(200, [("Cache-Control", "max-age=60")], text) }
        for _ in 0..<2 {
            for (url, text) in [("/a", "a"), ("/b", "b"), ("https://other.example/a", "c")] {
                #expect(try await bench.get(url).text == text)
            }
        }
        #expect(bench.sent == 3)
    }

    @Test func `what changes its Vary by a 304 is no longer what its key says`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=1"), ("ETag", "\"a\"")], "en")
        bench.answer(304, [("Cache-Control", "max-age=60"), ("ETag", "\"a\""), ("Vary", "Accept-Language")])
        bench.answer(200, [("Cache-Control", "max-age=60"), ("Vary", "Accept-Language")], "de")
        _ = try await bench.get("/page", [("Accept-Language", "en")])
        bench.wait(2)
        #expect(try await bench.get("/page", [("Accept-Language", "en")]).text == "en")
        #expect(try await bench.get("/page", [("Accept-Language", "de")]).text == "de" && bench.sent == 3)
    }

    @Test func `an anonymous answer is not for a user who waits`() async throws {
        let bench = try await HTTPBench()
        let gate = LoadGate()
        for (number, text) in ["all", "ann"].enumerated() {
            bench.answers.change {
                $0[number] = { _ in
                    if number == 0 { try await gate.waitInTask() }
                    return HTTPResponse(status: 200, fields: [("Cache-Control", "max-age=60")], body: Data(text.utf8))
                }
            }
        }
        async let all = bench.get().text
        try await Waiting.until { bench.sent == 1 }
        async let ann = bench.get("/page", [("Authorization", "ann")]).text
        gate.open()
        #expect(try await all == "all")
        #expect(try await ann == "ann")
    }

    @Test func `a clock that was set back makes nothing fresh for longer`() async throws {
        let bench = try await HTTPBench()
        for text in ["old", "new"] { bench.answer(200, [("Cache-Control", "max-age=60")], text) }
        _ = try await bench.get()
        bench.store.clock.set(bench.store.clock.now.addingTimeInterval(-86_400))
        for _ in 0..<2 { #expect(try await bench.get().text == "new") }
        #expect(bench.sent == 2)
    }

    @Test func `one URL may be written in several ways, and others are others`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=60")], "one")
        _ = try await bench.get("https://Example.org:443/a?b=c#d")
        for url in ["https://example.org/a?b=c", "HTTPS://EXAMPLE.ORG/a?b=c#e"] {
            #expect(try await bench.get(url).text == "one")
        }
        for url in [
            "http://example.org/a?b=c", "https://example.org:444/a?b=c", "https://example.org/a?b=C",
            "https://example.org/a", "https://example.org/a?b=c&", "https://sub.example.org/a?b=c",
            "https://example.org/%61?b=c",
        ] { await #expect(throws: HTTPBench.Lost.self, "\(url)") { _ = try await bench.get(url) } }
    }

    @Test func `a host can be removed, and a URL with all its variants`() async throws {
        let bench = try await HTTPBench()
        let large = String(repeating: "x", count: 100_000)
        for text in [large, "b", "c"] { bench.answer(200, vary("Foo"), text) }
        for foo in ["1", "2"] { _ = try await bench.get("/page", [("Foo", foo)]) }
        _ = try await bench.get("https://other.example/")
        #expect(try await bench.http.removeAll(host: "Example.org") == 3)
        for foo in ["1", "2"] {
            await #expect(throws: HTTPBench.Lost.self) { _ = try await bench.get("/page", [("Foo", foo)]) }
        }
        #expect(try await bench.get("https://other.example/").text == "c")
        try await bench.http.remove(HTTPRequest(try #require(URL(string: "https://other.example/"))))
        #expect(try await bench.keys() == [])
    }

    @Test func `dates have three forms, and nothing else is one`() async throws {
        for (date, isFresh) in [
            ("Fri, 01 Jan 2100 00:00:00 GMT", true), ("fri, 01 jan 2100 00:00:00 gmt", true),
            ("Friday, 01-Jan-60 00:00:00 GMT", true), ("Fri Jan  1 00:00:00 2100", true),
            ("Fri Jan 01 00:00:00 2100", true),
            ("Friday, 01-Jan-90 00:00:00 GMT", false), ("Fri, 01 Jan 2100 00:00:00 UTC", false),
            ("Fri, 01 Jan 60 00:00:00 GMT", false),
            ("Fri 01 Jan 2100 00:00:00 GMT", false), ("Fri, 01  Jan 2100 00:00:00 GMT", false),
            ("Fri, 01-Jan-2100 00:00:00 GMT", false),
            ("Fri, 1 Jan 2100 00:00:00 GMT", false), ("Fri, 01 Jan 2100 0:00:00 GMT", false),
            ("Fri, 01 Jan 2100 00.00.00 GMT", false),
            ("Fri, 32 Jan 2100 00:00:00 GMT", false), ("Fri, 01 Jan 99999999999999999999 00:00:00 GMT", false),
            ("", false),
        ] {
            let bench = try await HTTPBench()
            bench.answer(200, [("Expires", date)])
            _ = try await bench.get()
            if isFresh {
                #expect(try await bench.get().text == "body 0", "\(date)")
            } else {
                await #expect(throws: HTTPBench.Lost.self, "\(date)") { _ = try await bench.get() }
            }
        }
    }
}
