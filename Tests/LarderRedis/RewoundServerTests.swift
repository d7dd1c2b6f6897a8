import Foundation
import Larder
import LarderLocks
import LarderRedis
import LarderTestSupport
import Testing

/// Servers that come back with older data, or that are not the ones that a node takes them for.
@Suite(.enabled(if: RealServer.isInstalled, "redis-server is not installed"))
struct RewoundServerTests {
    /// Waits until a node has read nothing that others have not removed, and is current.
    private func settle(_ nodes: [RedisNode]) async throws {
        for node in nodes { try await node.settle() }
        try await Waiting.until { nodes.allSatisfy { $0.shared.health == .current } }
    }

    /// Leaves a server with three entries, of which the first is removed, the second replaced, and the third removed by its tag.
    private func change(_ nodes: [RedisNode], before: () async throws -> Void) async throws {
        try await nodes[0].shared.setValue("old", forKey: "removed")
        try await nodes[0].shared.setValue("old", forKey: "replaced")
        try await nodes[0].shared.setValue("old", forKey: "tagged", tags: ["red"])
        for node in nodes {
            for key in ["removed", "replaced", "tagged"] { #expect(try await node.get(key) == "old") }
        }
        try await before()
        try await nodes[0].shared.removeValue(forKey: "removed")
        try await nodes[0].shared.setValue("new", forKey: "replaced")
        try await nodes[0].shared.removeAll(tagged: "red")
        try await Waiting.until { nodes[1].cache["removed"] == nil && nodes[1].cache["tagged"] == nil }
    }

    private func expectNothingOld(_ nodes: [RedisNode]) async throws {
        for node in nodes {
            for key in ["removed", "replaced", "tagged"] { #expect(try await node.get(key) != "old", "\(key)") }
        }
    }

    @Test func `a server that comes back with an older snapshot serves nothing that was removed or replaced since`()
        async throws
    {
        let server = try RealServer(options: ["--save", "3600", "1"])
        let nodes = [try await RedisNode(server.url), try await RedisNode(server.url)]
        try await change(nodes) { try await server.run("SAVE") }
        server.kill()
        try await Waiting.until { nodes.allSatisfy { !$0.tier.isAvailable } }
        try server.start()
        try await settle(nodes)
        try await expectNothingOld(nodes)
        #expect(nodes.reduce(0) { $0 + $1.shared.statistics.lostWrites } == 1, "one node begins a new epoch for all")
        try await nodes[0].shared.setValue("newest", forKey: "removed")
        #expect(try await nodes[1].get("removed") == "newest")
    }

    @Test func `a server that lost only what one node had confirmed begins a new epoch too`() async throws {
        let server = try RealServer(options: ["--save", "3600", "1"])
        let node = try await RedisNode(server.url)
        try await node.shared.setValue("old", forKey: "a")
        try await server.run("SAVE")
        // No other node reads the message.
        await node.shared.close()
        node.tier.close()
        let (other, space) = (try await server.node(), SharedSpace("texts/1/cbor"))
        try await other.remove([.key(Data("ta".utf8))], in: space)
        server.kill()
        try await Waiting.until { !other.isAvailable }
        try server.start()
        try await Waiting.until { other.isConnected }
        #expect(try await other.fetch(Data("ta".utf8), in: space, lease: nil) == .missing)
    }

    @Test func `a server that comes back with all it had keeps its entries, also for a node that comes later`()
        async throws
    {
        let server = try RealServer(options: ["--save", "", "--appendonly", "yes", "--appendfsync", "always"])
        let (node, late) = (try await RedisNode(server.url), try await RedisNode(server.url))
        try await node.shared.setValue("kept", forKey: "a")
        try await late.settle()
        await late.shared.close()
        // Each life of the server has messages of its own.
        for round in 0..<2 {
            server.kill()
            try await Waiting.until { !node.tier.isAvailable }
            try server.start()
            try await settle([node])
            try await node.shared.setValue("\(round)", forKey: "b")
        }
        #expect(try await server.value("a") == "kept")
        let again = try await late.cache.shared(through: late.tier, options: RedisNode.options)
        #expect(try await again.value(forKey: "a") == "kept")
        #expect(try await again.value(forKey: "b") == "1")
        #expect(again.statistics.lostWrites == 0 && node.shared.statistics.lostWrites == 0)
        await again.close()
    }

    @Test func `a node that was closed finds out by the position that it has saved`() async throws {
        let server = try RealServer(options: ["--save", "3600", "1"])
        let node = try await RedisNode(server.url)
        try await node.shared.setValue("old", forKey: "a")
        try await server.run("SAVE")
        let other = try await server.node()
        try await other.remove([.key(Data("ta".utf8))], in: SharedSpace("texts/1/cbor"))
        try await Waiting.until { node.cache["a"] == nil }
        other.close()
        await node.shared.close()
        try await node.manager.close()
        server.kill()
        try server.start()
        let again = try await RedisNode(server.url, on: node.store)
        try await settle([again])
        #expect(try await again.get("a") == nil && again.shared.statistics.lostWrites == 1)
    }

    @Test func `a loss is found out after more messages than the server keeps`() async throws {
        let server = try RealServer(options: ["--save", "3600", "1"])
        let node = try await RedisNode(server.url)
        try await node.shared.setValue("old", forKey: "a")
        try await server.run("SAVE")
        try await node.shared.removeValue(forKey: "a")
        try await node.manager.flush()
        await node.shared.close()
        try await node.manager.close()
        node.tier.close()
        server.kill()
        try server.start()
        let other = try await server.node(streamLimit: 100)
        for number in 0..<1000 {
            try await other.remove([.key(Data("t\(number % 7)".utf8))], in: SharedSpace("texts/1/cbor"))
        }
        #expect(try await server.value("a") == "old")
        let again = try await RedisNode(server.url, on: node.store)
        try await settle([again])
        #expect(try await again.get("a") == nil && again.shared.statistics.lostWrites == 1)
    }

    @Test func `a server that has trimmed its messages loses nothing else`() async throws {
        let server = try RealServer()
        let nodes = [
            try await RedisNode(server.url, streamLimit: 100), try await RedisNode(server.url, streamLimit: 100),
        ]
        try await nodes[0].shared.setValue("kept", forKey: "kept")
        await nodes[1].shared.close()
        for number in 0..<1000 { try await nodes[0].shared.setValue("x", forKey: "\(number % 7)") }
        let again = try await nodes[1].cache.shared(through: nodes[1].tier, options: RedisNode.options)
        #expect(nodes[1].cache["kept"] == nil)
        #expect(try await again.value(forKey: "kept") == "kept" && again.statistics.lostWrites == 0)
        await again.close()
    }

    @Test(arguments: RealServer.binaries)
    func `a replica without the last writes that is promoted serves nothing from before them`(binary: String?)
        async throws
    {
        let (first, second) = (try RealServer(binary), try RealServer(binary))
        try await second.run("REPLICAOF", "127.0.0.1", "\(first.port)")
        let port = Mutex(first.port)
        let proxy = try Proxy(to: { port.withLock { $0 } })
        let nodes = [try await RedisNode(proxy.url), try await RedisNode(proxy.url)]
        try await change(nodes) {
            // The replica has what there is by now, and nothing later.
            while try await second.run("EXISTS", RedisNode.name("e:ttagged")) != .integer(1) { await Task.yield() }
            try await second.run("REPLICAOF", "127.0.0.1", "1")
        }
        // One that knew of a later message than the other would begin another epoch.
        for node in nodes { try await node.shared.catchUp() }
        first.kill()
        try await second.run("REPLICAOF", "NO", "ONE")
        port.withLock { $0 = second.port }
        proxy.cut()
        // They may not have noticed yet that they are cut off.
        try await Waiting.until { nodes.contains { $0.shared.statistics.lostWrites > 0 } }
        try await settle(nodes)
        try await expectNothingOld(nodes)
        #expect(nodes.reduce(0) { $0 + $1.shared.statistics.lostWrites } == 1)
    }

    @Test(arguments: RealServer.binaries)
    func `a node leaves a server that has become a replica, and finds its master`(binary: String?) async throws {
        let (first, second) = (try RealServer(binary), try RealServer(binary))
        let port = Mutex(first.port)
        let proxy = try Proxy(to: { port.withLock { $0 } })
        let node = try await RedisNode(proxy.url)
        try await node.shared.setValue("old", forKey: "a")
        port.withLock { $0 = second.port }
        try await first.run("REPLICAOF", "127.0.0.1", "\(second.port)")
        // Its connections still lead to the first one, which refuses writes.
        try await node.shared.setValue("new", forKey: "a")
        try await settle([node])
        try await node.shared.setValue("newer", forKey: "a")
        #expect(try await second.value("a") == "newer" && node.tier.failure == nil)
    }

    @Test func `a connection for messages that leads to a copy of the server does not count`() async throws {
        let (first, second) = (try RealServer(), try RealServer())
        try await second.run("REPLICAOF", "127.0.0.1", "\(first.port)")
        let port = Mutex(first.port)
        let (connections, reads) = (Counter(), Counter())
        let proxy = try Proxy(to: {
            let port = port.withLock { $0 }
            if port == second.port { connections.increment() }
            return port
        })
        let (a, b) = (try await RedisNode(first.url), try await RedisNode(proxy.url))
        try await a.shared.setValue("old", forKey: "a")
        #expect(try await b.get("a") == "old")
        // The copy has all messages up to now, and gets none of the later ones.
        while try await second.run("EXISTS", RedisNode.name("e:ta")) != .integer(1) { await Task.yield() }
        try await second.run("REPLICAOF", "NO", "ONE")
        port.withLock { $0 = second.port }
        proxy.change { bytes, toServer, _ in
            let isRead = toServer && String(decoding: bytes, as: UTF8.self).contains("XREAD")
            return isRead && reads.increment() == 1 ? nil : bytes
        }
        try await Waiting.until { connections.value >= 3 }
        try await a.shared.setValue("new", forKey: "a")
        #expect(b.shared.health != .current)
        port.withLock { $0 = first.port }
        try await settle([b])
        #expect(try await b.get("a") == "new")
    }

    @Test func `messages come from the server of the calls, or there are none`() async throws {
        let (first, second) = (try RealServer(), try RealServer())
        let port = Mutex(first.port)
        let proxy = try Proxy(to: { port.withLock { $0 } })
        let (a, b) = (try await RedisNode(first.url), try await RedisNode(proxy.url))
        try await a.shared.setValue("old", forKey: "a")
        #expect(try await b.get("a") == "old")
        // Its next read ends its connection for calls alone, and the next one leads to another server.
        port.withLock { $0 = second.port }
        proxy.change { bytes, toServer, _ in
            toServer && String(decoding: bytes, as: UTF8.self).contains("HMGET") ? nil : bytes
        }
        #expect(try await b.get("none") == nil)
        proxy.change { bytes, _, _ in bytes }
        try await settle([b])
        let c = try await RedisNode(second.url)
        try await c.shared.setValue("new", forKey: "a")
        try await Waiting.until { b.cache["a"] == nil }
        #expect(try await b.get("a") == "new")
    }
}
