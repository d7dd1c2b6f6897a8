import Foundation
import Larder
import LarderRedis
import LarderTestSupport
import Testing

/// Three processes on a server with a replica, all of which are stopped, killed and started again, while the server loses what it has, is
/// back at an earlier moment, or is replaced by its replica, which lacks the last writes.
@Suite(.enabled(if: RealServer.isInstalled, "redis-server is not installed"))
struct ChaosTests {
    private static let keys = (0..<9).map { "\($0)" }

    @Test func `after all faults each copy is none or the true value`() async throws {
        // It waits for lines of the processes.
        try await onThread { try Self.run() }
    }

    private static func run() throws {
        var random = Seeded()
        print("chaos: SEED=\(random.seed)")
        let (folder, servers) = (try TemporaryFolder(), try Servers())
        let truth = folder("truth")
        try FileManager.default.createDirectory(at: truth, withIntermediateDirectories: true)
        func start(_ index: Int) throws -> ChildProcess {
            try ChildProcess(
                "larder-test-node",
                [folder("\(index).sqlite").path, servers.url, "\(index)", truth.path, "\(random.next())"])
        }
        let seconds = ProcessInfo.processInfo.environment["LARDER_CHAOS"].flatMap { Int($0) }
        let end = ContinuousClock.now + .seconds(seconds ?? 0)
        var (rounds, faults) = (0, [String: Int]())
        while rounds < 3 || ContinuousClock.now < end {
            rounds += 1
            var nodes = try (0..<3).map { try start($0) }
            func work(_ count: Int, without stopped: Int? = nil) throws {
                for _ in 0..<count {
                    for index in nodes.indices where index != stopped {
                        #expect(nodes[index].line() == "working", "seed \(random.seed)")
                    }
                }
            }
            for _ in 0..<12 {
                let index = Int.random(in: 0..<3, using: &random)
                try work(.random(in: 1...3, using: &random))
                let fault = Int.random(in: 0..<8, using: &random)
                faults["\(fault)", default: 0] += 1
                switch fault {
                case 0:
                    kill(nodes[index].identifier, SIGSTOP)
                    try work(2, without: index)
                    kill(nodes[index].identifier, SIGCONT)
                case 1:
                    nodes[index].kill()
                    try work(1, without: index)
                    nodes[index] = try start(index)
                case 2:
                    try servers.master.stop()
                    // Until calls are late.
                    try work(40)
                    try servers.master.goOn()
                case 3:
                    servers.master.kill()
                    try work(10)
                    try servers.master.start()
                case 4: try servers.run("FLUSHALL")
                // What it has now it has again whenever it is started from now on.
                // While a replica is synchronized, the server says that it saves already.
                case 5: do { try servers.run("SAVE") } catch RedisFault.refused(_) {}
                case 6: try servers.run("XTRIM", RedisNode.name("stream"), "MAXLEN", "0")
                default: try servers.failOver { try work(.random(in: 0...3, using: &random)) }
                }
            }
            for node in nodes { try node.goOn() }
            for node in nodes {
                var line = node.line()
                while line == "working" { line = node.line() }
                #expect(line == "settled", "seed \(random.seed), \(servers.description)")
            }
            try check(nodes, servers, truth, random.seed)
            for node in nodes { node.kill() }
        }
        print("chaos: \(rounds) rounds, faults \(faults.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" })")
    }

    /// Waits until messages that are on their way have come, and then nothing is wrong.
    private static func check(_ nodes: [ChildProcess], _ servers: Servers, _ truth: URL, _ seed: UInt64) throws {
        let end = ContinuousClock.now + Waiting.limit
        var wrong: [String] = []
        repeat {
            wrong = []
            for key in keys {
                let file = truth.appendingPathComponent(key)
                let value =
                    FileManager.default.fileExists(atPath: file.path)
                    ? try String(contentsOf: file, encoding: .utf8) : "none"
                let found = try waiting { [master = servers.master] in try await master.value(key) }
                if let found, found != value { wrong.append("\(key) is \(found) in the tier, and should be \(value)") }
                for (index, node) in nodes.enumerated() {
                    let copies = try node.ask("").split(separator: " ").map { $0.split(separator: "=") }
                    for copy in copies where copy[0] == key {
                        for text in copy[1...] where text != "nil" && text != value {
                            wrong.append("\(key) is \(text) on node \(index), and should be \(value)")
                        }
                    }
                }
            }
        } while !wrong.isEmpty && ContinuousClock.now < end
        #expect(wrong.isEmpty, "seed \(seed): \(wrong)")
    }
}

/// A master and its replica behind one address.
private final class Servers {
    private let both: [RealServer]
    private let port: Locked<Int>
    private let proxy: Proxy
    private var current = 0

    init() throws {
        both = [try RealServer(), try RealServer()]
        let port = Locked(both[0].port)
        (self.port, proxy) = (port, try Proxy(to: { port.value }))
        try follow()
    }

    var url: String { proxy.url }
    var description: String { "master at \(master.port), proxy leads to \(port.value)" }
    var master: RealServer { both[current] }
    private var replica: RealServer { both[1 - current] }

    func run(_ words: String...) throws { _ = try waiting { [master] in try await master.run(words: words) } }

    private func follow(_ port: Int? = nil) throws {
        let words = ["REPLICAOF", "127.0.0.1", "\(port ?? master.port)"]
        _ = try waiting { [replica] in try await replica.run(words: words) }
    }

    /// Lets the replica take the place of the master.
    ///
    /// - Parameter unseen: Is done on the master alone.
    func failOver(_ unseen: () throws -> Void) throws {
        try follow(1)
        try unseen()
        master.kill()
        _ = try waiting { [replica] in try await replica.run("REPLICAOF", "NO", "ONE") }
        current = 1 - current
        port.change { $0 = master.port }
        proxy.cut()
        try replica.start()
        try follow()
    }
}
