import Foundation
import Larder
import LarderHTTP
import LarderShared
import LarderTestSupport
import LarderTesting
import Testing

/// One request of many nodes, through a shared tier.
struct SharedTests {
    private let fresh = [("Cache-Control", "max-age=60"), ("ETag", "\"a\"")]

    /// Two nodes, each with a store of its own, and one origin.
    private struct Nodes {
        let first: HTTPBench
        let second: HTTPBench
        let tiers: [MemorySharedTier]

        init(options: HTTPOptions = .init()) async throws {
            let store = try TemporaryStore()
            let tier = MemorySharedTier(clock: { [clock = store.clock] in clock.now })
            tiers = [tier, MemorySharedTier(joining: tier)]
            first = try await HTTPBench(options, store, through: tiers[0])
            let other = try TemporaryStore()
            second = try await HTTPBench(options, other, through: tiers[1], origin: first)
            #expect(store.clock.now == other.clock.now)
        }
    }

    @Test func `a thousand tasks on two nodes make one request`() async throws {
        let nodes = try await Nodes()
        let gate = LoadGate()
        nodes.first.answers.change { [fresh] in
            $0[0] = { _ in
                try await gate.waitInTask()
                return HTTPResponse(status: 200, fields: fresh, body: Data("one".utf8))
            }
        }
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<1000 {
                group.addTask { try await (number % 2 == 0 ? nodes.first : nodes.second).get().text }
            }
            gate.open()
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(texts == ["one"] && nodes.first.sent == 1)
        // It is in the store of each node.
        for bench in [nodes.first, nodes.second] { #expect(try await bench.get().outcome.contains("hit")) }
        #expect(nodes.first.sent == 1)
    }

    @Test(arguments: [300, 200_000])
    func `a node gets the fields and the body that another one has got`(size: Int) async throws {
        let nodes = try await Nodes()
        let body = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 * 7) })
        nodes.first.answers.change { [fresh] in $0[0] = { _ in HTTPResponse(status: 200, fields: fresh, body: body) } }
        _ = try await nodes.first.get()
        nodes.first.wait(10)
        nodes.second.wait(10)
        let response = try await nodes.second.get()
        #expect(response.body == body && response.field("ETag") == "\"a\"" && response.field("Age") == "10")
        #expect(response.outcome == "Larder; fwd=uri-miss; ttl=49; collapsed; detail=\"shared\"")
        #expect(nodes.second.http.statistics.collapsed == 1)
    }

    @Test func `a node whose clock is late serves a response no longer than the others`() async throws {
        let nodes = try await Nodes()
        nodes.first.answer(200, fresh)
        nodes.first.answer(200, fresh)
        _ = try await nodes.first.get()
        // The clock of the tier is that of the first node.
        nodes.first.wait(50)
        #expect(try await nodes.second.get().outcome.contains("ttl=9;"))
        nodes.first.wait(11)
        nodes.second.wait(11)
        #expect(try await nodes.second.get().text == "body 1" && nodes.first.sent == 2)
    }

    @Test func `nodes whose clocks differ by minutes take and store all the same`() async throws {
        for seconds in [-300, 300] {
            let nodes = try await Nodes()
            for _ in 0..<3 { nodes.first.answer(200, fresh) }
            nodes.second.wait(seconds)
            _ = try await nodes.first.get()
            let taken = try await nodes.second.get()
            #expect(taken.text == "body 0" && taken.outcome.contains("ttl=59;"))
            // What it gets itself later is the newer one.
            #expect(try await nodes.second.get("/page", [("Cache-Control", "no-cache")]).text == "body 1")
            #expect(try await nodes.second.get().text == "body 1")
        }
    }

    @Test func `at the end of a response the nodes make one request again`() async throws {
        let nodes = try await Nodes()
        for _ in 0..<2 { nodes.first.answer(200, [("Cache-Control", "max-age=10")]) }
        for bench in [nodes.first, nodes.second] { _ = try await bench.get() }
        for bench in [nodes.first, nodes.second] { bench.wait(10) }
        for bench in [nodes.first, nodes.second] { #expect(try await bench.get().text == "body 1") }
        #expect(nodes.first.sent == 2)
    }

    @Test func `what is not for all is asked for by each node`() async throws {
        for fields in [[("Cache-Control", "no-store")], [("Cache-Control", "no-cache"), ("ETag", "\"a\"")]] {
            let nodes = try await Nodes()
            for _ in 0..<2 { nodes.first.answer(200, fields) }
            #expect(try await nodes.first.get().text == "body 0")
            #expect(try await nodes.second.get().text == "body 1")
        }
    }

    @Test func `another variant and another user are asked for by each node`() async throws {
        for (name, fields) in [("Accept-Language", fresh + [("Vary", "Accept-Language")]), ("Authorization", fresh)] {
            let nodes = try await Nodes()
            for _ in 0..<2 { nodes.first.answer(200, fields) }
            #expect(try await nodes.first.get("/page", [(name, "a")]).text == "body 0")
            #expect(try await nodes.second.get("/page", [(name, "b")]).text == "body 1")
            #expect(try await nodes.second.get("/page", [(name, "b")]).text == "body 1")
        }
        let nodes = try await Nodes()
        nodes.first.answer(200, fresh + [("Vary", "Accept-Language")])
        for bench in [nodes.first, nodes.second] {
            #expect(try await bench.get("/page", [("Accept-Language", "a")]).text == "body 0")
        }
    }

    @Test func `what a request does not accept is asked for`() async throws {
        let nodes = try await Nodes()
        for _ in 0..<2 { nodes.first.answer(200, fresh) }
        _ = try await nodes.first.get()
        nodes.first.wait(10)
        nodes.second.wait(10)
        #expect(try await nodes.second.get("/page", [("Cache-Control", "max-age=5")]).text == "body 1")
    }

    @Test func `what was removed is not in the tier`() async throws {
        let page = HTTPRequest(try #require(URL(string: "https://example.org/page")))
        let removals: [@Sendable (HTTPBench) async throws -> Void] = [
            { try await $0.http.remove(page) }, { try await $0.http.removeAll() },
            { _ = try await $0.http.removeAll(host: "example.org") },
            { bench in
                bench.answer(204)
                _ = try await bench.get(method: "DELETE")
            },
        ]
        for remove in removals {
            let nodes = try await Nodes()
            nodes.first.answer(200, fresh, "old")
            _ = try await nodes.first.get()
            try await remove(nodes.first)
            nodes.first.answer(200, fresh, "new")
            #expect(try await nodes.second.get().text == "new")
        }
    }

    @Test func `a refresh in the background is one of all nodes`() async throws {
        let nodes = try await Nodes()
        nodes.first.answer(200, [("Cache-Control", "max-age=10, stale-while-revalidate=60")])
        nodes.first.answer(200, [("Cache-Control", "max-age=10, stale-while-revalidate=60")])
        for bench in [nodes.first, nodes.second] { _ = try await bench.get() }
        for bench in [nodes.first, nodes.second] { bench.wait(20) }
        for bench in [nodes.first, nodes.second] {
            #expect(try await bench.get().text == "body 0")
            try await Waiting.asking { try await bench.get().text == "body 1" }
        }
        #expect(nodes.first.sent == 2)
    }

    @Test func `a failure of the origin is that of each node`() async throws {
        let nodes = try await Nodes()
        for bench in [nodes.first, nodes.second] {
            await #expect(throws: HTTPBench.Lost.self) { _ = try await bench.get() }
        }
        #expect(nodes.first.sent == 2)
    }

    @Test func `without its tier a node asks for itself`() async throws {
        let nodes = try await Nodes()
        for _ in 0..<2 { nodes.first.answer(200, fresh) }
        nodes.tiers[1].isAvailable = false
        #expect(try await nodes.first.get().text == "body 0")
        #expect(try await nodes.second.get().text == "body 1")
        #expect(try await nodes.second.get().outcome.contains("hit"))
        await nodes.second.http.close()
        #expect(try await nodes.second.get().outcome.contains("hit"))
    }

    @Test func `after it was closed each request asks the origin`() async throws {
        let nodes = try await Nodes()
        nodes.first.answer(200, fresh)
        await nodes.first.http.close()
        #expect(try await nodes.first.get().text == "body 0" && nodes.first.http.statistics.failures == 0)
        try await nodes.first.http.removeAll()
    }
}
