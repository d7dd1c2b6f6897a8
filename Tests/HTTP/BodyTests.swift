import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import LarderTesting
import Testing

/// Large bodies, bodies that are on their way, and what the store does.
struct BodyTests {
    private let fresh = [("Cache-Control", "max-age=60"), ("ETag", "\"a\"")]
    private static let large = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 * 7) })

    @Test func `a large body is a file, and the same after an opening`() async throws {
        let bench = try await HTTPBench()
        bench.answers.change { [fresh] in $0[0] = { _ in HTTPResponse(status: 200, fields: fresh, body: Self.large) } }
        for _ in 0..<3 { #expect(try await bench.get().body == Self.large) }
        #expect(bench.sent == 1 && bench.http.statistics.hits == 2)
        #expect(try bench.store.spilledFiles().count == 1)
        let part = try await bench.get("/page", [("Range", "bytes=1000-1009")])
        #expect(part.body == Self.large[1000..<1010])
        let again = try await HTTPCache(in: bench.store.reopen())
        let request = HTTPRequest(try #require(URL(string: "https://example.org/page")))
        let response = try await again.response(for: request) { _ in throw HTTPBench.Lost() }
        #expect(response.body == Self.large && response.field("ETag") == "\"a\"")
    }

    @Test func `a very large body is mapped, and a part of it served`() async throws {
        let bench = try await HTTPBench()
        let body = Data((0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 * 7) })
        bench.answers.change { [fresh] in $0[0] = { _ in HTTPResponse(status: 200, fields: fresh, body: body) } }
        for _ in 0..<2 { #expect(try await bench.get().body == body) }
        let part = try await bench.get("/page", [("Range", "bytes=4500000-4500009")])
        #expect(part.status == 206 && part.body == body[4_500_000..<4_500_010] && bench.sent == 1)
        for name in try bench.store.spilledFiles() {
            try Data(body.prefix(10)).write(to: bench.store.folder(name))
        }
        bench.answer(200, fresh, "two")
        #expect(try await bench.get().text == "two" && bench.sent == 2)
    }

    @Test func `a body that is replaced or removed leaves no file`() async throws {
        let bench = try await HTTPBench()
        bench.answers.change { [fresh] in
            for number in 0..<3 {
                $0[number] = { _ in HTTPResponse(status: 200, fields: fresh, body: Self.large + [UInt8(number)]) }
            }
        }
        for _ in 0..<3 { _ = try await bench.get("/page", [("Cache-Control", "no-cache")]) }
        #expect(bench.sent == 3)
        #expect(try await bench.get().body == Self.large + [2])
        let bodies: Cache<String, Data> = try await bench.manager.cache(
            named: "http bodies", version: .custom("1 private"), maxAge: .unlimited)
        #expect(try bodies.count == 1)
        bench.answer(200, fresh, "small")
        _ = try await bench.get("/page", [("Cache-Control", "no-cache")])
        #expect(try bodies.count == 0)
    }

    @Test func `the file of a body that a killed process has left is deleted after a day`() async throws {
        let (manager, folder) = (FileManager.default, FileManager.default.temporaryDirectory)
        let (old, young) = (
            folder.appendingPathComponent("larder-body-1-old-\(UUID())"),
            folder.appendingPathComponent("larder-body-1-young-\(UUID())")
        )
        for (file, age) in [(old, 90_000.0), (young, 80_000.0)] {
            try Data("part".utf8).write(to: file)
            try manager.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -age)], ofItemAtPath: file.path)
        }
        defer { do { try manager.removeItem(at: young) } catch { Issue.record(error) } }
        _ = try await HTTPBench()
        #expect(!manager.fileExists(atPath: old.path) && manager.fileExists(atPath: young.path))
    }

    @Test func `two objects on one store serve what the other one has stored`() async throws {
        let first = try await HTTPBench()
        let second = try await HTTPCache(in: first.store.manager())
        let request = HTTPRequest(try #require(URL(string: "https://example.org/page")))
        first.answers.change { [fresh] answers in
            for (number, body) in [Self.large, Data("small".utf8)].enumerated() {
                answers[number] = { _ in HTTPResponse(status: 200, fields: fresh, body: body) }
            }
        }
        for (number, body) in [Self.large, Data("small".utf8)].enumerated() {
            _ = try await first.get("/page", [("Cache-Control", "no-cache")])
            let response = try await second.response(for: request) { _ in throw HTTPBench.Lost() }
            #expect(response.body == body, "\(number)")
        }
        try await second.remove(request)
        first.answer(200, fresh, "new")
        #expect(try await first.get().text == "new")
    }

    @Test func `a large body that is replaced while it is held stays as it was`() async throws {
        let bench = try await HTTPBench()
        let other = Data(Self.large.reversed())
        bench.answers.change { [fresh] answers in
            for (number, body) in [Self.large, other].enumerated() {
                answers[number] = { _ in HTTPResponse(status: 200, fields: fresh, body: body) }
            }
        }
        _ = try await bench.get()
        let held = try await bench.get()
        _ = try await bench.get("/page", [("Cache-Control", "no-cache")])
        #expect(try await bench.get().body == other && held.body == Self.large)
        try await bench.http.removeAll()
        try await bench.manager.maintain()
        #expect(held.body == Self.large)
    }

    @Test func `a file that is lost or cut is a miss`() async throws {
        for isCut in [false, true] {
            let bench = try await HTTPBench(HTTPOptions(memory: .disabled))
            bench.answers.change { [fresh] answers in
                for number in 0..<2 {
                    answers[number] = { _ in HTTPResponse(status: 200, fields: fresh, body: Self.large) }
                }
            }
            _ = try await bench.get()
            for name in try bench.store.spilledFiles() {
                let file = bench.store.folder(name)
                if isCut {
                    try Data(Self.large.prefix(10)).write(to: file)
                } else {
                    try FileManager.default.removeItem(at: file)
                }
            }
            #expect(try await bench.get().body == Self.large && bench.sent == 2)
            #expect(try await bench.get().body == Self.large && bench.sent == 2)
        }
    }

    @Test func `damaged and undecodable entries are misses`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, fresh)
        bench.answer(200, fresh, "two")
        _ = try await bench.get()
        // Another program has put something else there.
        let foreign: Cache<String, Int> = try await bench.store.manager().cache(
            named: "http", version: .custom("1 private"), maxAge: .unlimited)
        for key in try await bench.keys() { try await foreign.setValue(1, forKey: key) }
        #expect(try await bench.get().text == "two" && bench.http.statistics.failures > 0)
        #expect(try await bench.get().text == "two" && bench.sent == 2)
    }

    /// A record as another program could write it.
    private struct Record: Codable, Sendable {
        struct Response: Codable, Sendable {
            struct Policy: Codable, Sendable {
                var lifetime, initialAge: Int64
                var isAlwaysRevalidated, mustRevalidate, isImmutable, isPublic: Bool
                var staleWhileRevalidate: Int64
            }
            var status: Int
            var names, values: [String]
            var requestedAt, receivedAt: Int64
            var policy: Policy
            var body: Data
            var bodySize: Int
        }
        var response: Response
        var varies: [[String]]
    }

    @Test(arguments: 0..<6)
    func `numbers that no cache would store are a miss`(number: Int) async throws {
        let bench = try await HTTPBench()
        bench.answer(200, fresh)
        bench.answer(200, fresh, "two")
        _ = try await bench.get()
        let foreign: Cache<String, Record> = try await bench.store.manager().cache(
            named: "http", version: .custom("1 private"), maxAge: .unlimited)
        for key in try await bench.keys() {
            var record = try #require(try await foreign.value(forKey: key))
            switch number {
            case 0: record.response.policy.initialAge = .max
            case 1: record.response.policy.lifetime = .min
            case 2: record.response.receivedAt = .min
            case 3: (record.response.requestedAt, record.response.receivedAt) = (.max, 0)
            case 4: record.response.bodySize = 1000
            default: record.response.bodySize = -1
            }
            try await foreign.setValue(record, forKey: key)
        }
        #expect(try await bench.get("/page", [("Range", "bytes=500-")]).text == "two")
        bench.answer(200, fresh, "three")
        #expect(try await bench.get().text == "three")
        #expect(try await bench.get().text == "three" && bench.sent == 3)
    }

    @Test func `a store that fails costs a request, and no answer`() async throws {
        let bench = try await HTTPBench()
        for _ in 0..<2 { bench.answer(200, fresh) }
        try await bench.manager.close()
        for number in 0..<2 { #expect(try await bench.get().text == "body \(number)") }
        #expect(bench.http.statistics.failures > 0)
    }

    @Test func `private and shared caches purge each other`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "private, max-age=60")])
        _ = try await bench.get()
        let shared = try await HTTPCache(in: bench.manager, options: HTTPOptions(isShared: true))
        let request = HTTPRequest(try #require(URL(string: "https://example.org/page")))
        await #expect(throws: HTTPBench.Lost.self) {
            _ = try await shared.response(for: request) { _ in throw HTTPBench.Lost() }
        }
    }

    @Test func `what is invalidated while it is on its way is not stored`() async throws {
        let bench = try await HTTPBench()
        let (begun, gate) = (LoadGate(), LoadGate())
        bench.answers.change { [fresh] in
            $0[0] = { _ in
                begun.open()
                try await gate.waitInTask()
                return HTTPResponse(status: 200, fields: fresh, body: Data("old".utf8))
            }
            $0[1] = { _ in HTTPResponse(status: 204, fields: [], body: Data()) }
        }
        async let old = bench.get().text
        try await begun.waitInTask()
        _ = try await bench.get("/page", method: "POST")
        gate.open()
        #expect(try await old == "old")
        await #expect(throws: HTTPBench.Lost.self) { _ = try await bench.get() }
    }

    // MARK: On their way

    private func parts(_ sizes: [Int], then error: (any Error)? = nil) -> AsyncThrowingStream<Data, any Error> {
        AsyncThrowingStream { continuation in
            for (number, size) in sizes.enumerated() { continuation.yield(Data(repeating: UInt8(number), count: size)) }
            continuation.finish(throwing: error)
        }
    }

    @Test func `a body of unknown length is stored while it is delivered`() async throws {
        let bench = try await HTTPBench()
        bench.answers.change { [fresh, self] in
            $0[0] = { _ in HTTPResponse(status: 200, fields: fresh, parts: parts([60_000, 60_000, 3])) }
        }
        let first = try await bench.get()
        // Whether it will be stored is not known yet.
        #expect(first.outcome == "Larder; fwd=uri-miss; fwd-status=200")
        let whole = try await first.wholeBody()
        #expect(whole.count == 120_003)
        let response = try await bench.get()
        #expect(response.parts == nil && response.body == whole && bench.sent == 1)
    }

    @Test func `a body that breaks or is not taken is not kept`() async throws {
        let bench = try await HTTPBench()
        bench.answers.change { [fresh, self] in
            $0[0] = { _ in HTTPResponse(status: 200, fields: fresh, parts: parts([10, 10], then: HTTPBench.Lost())) }
            $0[1] = { _ in HTTPResponse(status: 200, fields: fresh, parts: parts([10, 10])) }
            $0[2] = { _ in
                HTTPResponse(status: 200, fields: fresh + [("Content-Length", "21")], parts: parts([10, 10]))
            }
            $0[3] = { _ in HTTPResponse(status: 200, fields: fresh, parts: parts([10])) }
        }
        await #expect(throws: HTTPBench.Lost.self) { _ = try await bench.get().wholeBody() }
        do {
            let response = try await bench.get()
            for try await part in try #require(response.parts) {
                #expect(part.count == 10)
                break
            }
        }
        #expect(try await bench.get().wholeBody().count == 20)
        #expect(try await bench.get().wholeBody().count == 10)
        #expect(try await bench.get().body.count == 10 && bench.sent == 4)
    }

    @Test func `a body that is too large is passed on whole`() async throws {
        let bench = try await HTTPBench(HTTPOptions(bodyLimit: 15))
        bench.answers.change { [fresh, self] in
            for number in 0..<2 {
                $0[number] = { _ in HTTPResponse(status: 200, fields: fresh, parts: parts([10, 10])) }
            }
        }
        for number in 1...2 {
            #expect(try await bench.get().wholeBody().count == 20)
            #expect(bench.sent == number)
        }
    }

    @Test func `no one waits for the reader of another body`() async throws {
        let bench = try await HTTPBench()
        bench.answers.change { [fresh, self] in
            $0[0] = { _ in HTTPResponse(status: 200, fields: fresh, parts: parts([10, 10])) }
            $0[1] = { _ in HTTPResponse(status: 200, fields: fresh, body: Data(count: 5)) }
        }
        let first = try await bench.get()
        #expect(try await bench.get().body.count == 5)
        #expect(try await first.wholeBody().count == 20)
        #expect(try await bench.get().body.count == 20 && bench.sent == 2)
    }

    @Test func `a refresh in the background stores a body that comes in parts`() async throws {
        let bench = try await HTTPBench()
        bench.answer(200, [("Cache-Control", "max-age=1, stale-while-revalidate=60")])
        bench.answers.change { [fresh, self] in
            $0[1] = { _ in HTTPResponse(status: 200, fields: fresh, parts: parts([0, 10, 10])) }
        }
        _ = try await bench.get()
        bench.wait(2)
        #expect(try await bench.get().text == "body 0")
        try await Waiting.asking { try await bench.get().body.count == 20 }
        #expect(bench.sent == 2)
    }
}
