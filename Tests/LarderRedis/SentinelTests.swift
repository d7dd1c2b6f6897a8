import Foundation
import Larder
import LarderRedis
import LarderTestSupport
import Testing

/// Real sentinels, which choose another master when theirs is killed.
@Suite(.enabled(if: RealServer.isInstalled, "redis-server is not installed"))
struct SentinelTests {
    /// A sentinel, which writes what it learns into its own file.
    private final class Sentinel: Sendable {
        let folder: TemporaryFolder
        let process: RealServer

        init(of port: Int) throws {
            folder = try TemporaryFolder()
            let file = folder.url.appendingPathComponent("sentinel.conf")
            let text = """
                sentinel monitor cache 127.0.0.1 \(port) 2
                sentinel auth-pass cache secret
                sentinel down-after-milliseconds cache 1000
                sentinel failover-timeout cache 5000
                """
            try Data(text.utf8).write(to: file)
            process = try RealServer(configuration: file, options: ["--sentinel"])
        }

        /// The number of others of a kind that it knows of its master.
        func count(of kind: String) async throws -> Int {
            guard case .array(let found?) = try await process.run("SENTINEL", kind, "cache") else { return 0 }
            return found.count
        }
    }

    @Test func `nodes follow their master to another server, which serves nothing that was removed`() async throws {
        let first = try RealServer()
        let second = try RealServer(options: ["--save", "", "--replicaof", "127.0.0.1 \(first.port)"])
        let sentinels = try (0..<3).map { _ in try Sentinel(of: first.port) }
        // The first one that is asked is not there.
        let urls = ["redis://127.0.0.1:1"] + sentinels.map { "redis://127.0.0.1:\($0.process.port)" }
        let source = RedisSentinels(urls, master: "cache", timeout: .seconds(60))
        #expect(try await source.address() == "redis://127.0.0.1:\(first.port)/0")
        let nodes = try await [RedisNode(from: source), RedisNode(from: source)]
        for node in nodes { try await node.settle() }
        try await nodes[0].shared.setValue("one", forKey: "a")
        try await nodes[0].shared.setValue("one", forKey: "b")
        try await nodes[0].shared.removeValue(forKey: "b")
        #expect(try await nodes[1].get("a") == "one")
        // The sentinels know of each other, and of the replica, which has everything.
        for sentinel in sentinels {
            for (kind, count) in [("SENTINELS", 2), ("REPLICAS", 1)] {
                try await Waiting.asking { try await sentinel.count(of: kind) == count }
            }
        }
        #expect(try await first.run("WAIT", "1", "0") == .integer(1))
        first.kill()
        try await Waiting.asking { try await source.address() == "redis://127.0.0.1:\(second.port)/0" }
        for node in nodes { try await node.settle() }
        try await nodes[1].shared.setValue("two", forKey: "a")
        try await Waiting.until { nodes[0].cache["a"] == nil }
        #expect(try await nodes[0].get("a") == "two")
        #expect(try await nodes[0].get("b") == nil)
        withExtendedLifetime((second, sentinels)) {}
    }

    @Test func `sentinels that do not answer, or do not know the name, are named`() async throws {
        let server = try RealServer()
        let sentinel = try Sentinel(of: server.port)
        let url = "redis://127.0.0.1:\(sentinel.process.port)"
        let source = RedisSentinels(["redis://127.0.0.1:1", url], master: "other", timeout: .seconds(60))
        let failure = await #expect(throws: RedisTier.Failure.self) { try await source.address() }
        #expect(failure?.description.contains("127.0.0.1:1: Connection refused.") == true)
        #expect(failure?.description.contains("\(sentinel.process.port): It does not know this name.") == true)
        let node = RedisTier(prefix: "test", address: source.address)
        try await Waiting.until { node.failure?.contains("No sentinel knows the master \"other\"") == true }
    }
}
