import Foundation
import LarderLocks
import LarderRedis
import LarderTestSupport
import Testing

/// A link to a real server, on a port and in a folder of its own.
@Suite(.enabled(if: RealServer.isInstalled, "redis-server is not installed"))
struct RealServerTests {
    private let server: RealServer

    init() throws { server = try RealServer() }

    private func words(_ words: String...) -> [Data] { words.map { Data($0.utf8) } }

    private func link(_ change: (inout RedisLink.Options) -> Void = { _ in }) async throws -> RedisLink {
        var options = RedisLink.Options()
        options.timeout = .seconds(120)
        change(&options)
        let link = try RedisLink(try server.address, options)
        try await Waiting.until { link.isAvailable }
        return link
    }

    @Test func `values, numbers, lists and errors are what the server has`() async throws {
        let link = try await link()
        #expect(try await link.call(words("SET", "a", "1\r\n")) == .simple("OK"))
        #expect(try await link.call(words("GET", "a")) == .bulk(Data("1\r\n".utf8)))
        #expect(try await link.call(words("GET", "none")) == .bulk(nil))
        #expect(try await link.call(words("INCRBY", "n", "41")) == .integer(41))
        #expect(try await link.call(words("XADD", "s", "1-1", "k", "v")) == .bulk(Data("1-1".utf8)))
        let fields = RESPValue.array([.bulk(Data("k".utf8)), .bulk(Data("v".utf8))])
        let entry = RESPValue.array([.bulk(Data("1-1".utf8)), fields])
        #expect(
            try await link.call(words("XREAD", "STREAMS", "s", "0"))
                == .array([
                    .array([.bulk(Data("s".utf8)), .array([entry])])
                ]))
        #expect(try await link.call(words("XREAD", "STREAMS", "s", "1-1")) == .array(nil))
        #expect(
            try await link.call(words("EVAL", "return {1, 'two', {ARGV[1]}}", "0", "x"))
                == .array([
                    .integer(1), .bulk(Data("two".utf8)), .array([.bulk(Data("x".utf8))]),
                ]))
        await #expect(throws: RedisFault.self) { try await link.call(words("GET")) }
        await #expect(throws: RedisFault.self) { try await link.call(words("EVALSHA", "0123456789", "0")) }
        #expect(try await link.call(words("PING")) == .simple("PONG"))
    }

    @Test func `many tasks share one connection`() async throws {
        let link = try await link()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<256 {
                group.addTask {
                    let value = Data(repeating: UInt8(task), count: task * 40)
                    let key = Data("k\(task)".utf8)
                    _ = try await link.call([Data("SET".utf8), key, value])
                    #expect(try await link.call([Data("GET".utf8), key]) == .bulk(value))
                }
            }
            try await group.waitForAll()
        }
        let clients = try await link.call(words("CLIENT", "LIST"))
        guard case .bulk(let list?) = clients else { throw RedisFault.lost }
        #expect(list.split(separator: UInt8(ascii: "\n")).count == 1)
    }

    @Test func `a server that stands still ends the connection, and goes on`() async throws {
        let made = try await self.link { $0.timeout = .milliseconds(100) }
        try server.stop()
        await #expect(throws: RedisFault.lost) { try await made.call(words("SET", "late", "1")) }
        try await Waiting.until { !made.isAvailable }
        await #expect(throws: RedisFault.unavailable) { try await made.call(words("GET", "late")) }
        try server.goOn()
        try await Waiting.until { made.isAvailable }
        #expect(try await made.call(words("PING")) == .simple("PONG"))
    }

    @Test func `a server that is killed and started again is found`() async throws {
        let link = try await link()
        server.kill()
        try await Waiting.until { !link.isAvailable }
        try server.start()
        try await Waiting.until { link.isAvailable }
        #expect(try await link.call(words("GET", "a")) == .bulk(nil))
    }
}
