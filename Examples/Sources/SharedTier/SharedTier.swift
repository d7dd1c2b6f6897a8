import Foundation
import Larder
import LarderRedis

/// Three nodes that share a cache: one load for 300 tasks, a removal that all see, and a server that stops and starts again.
///
/// With a `redis-server` on this machine the nodes share a real one, and else a tier in memory.
@main
struct ThreeNodes {
    static func main() async throws {
        let network = try await Network()
        print(network.description)
        let nodes = try await open(network)
        let loads = Loads()

        var start = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<300 {
                group.addTask {
                    _ = try await nodes[task % 3].value(forKey: 7) { id in
                        await loads.add()
                        // A slow network.
                        try await Task.sleep(for: .milliseconds(200))
                        return "article \(id)"
                    }
                }
            }
            try await group.waitForAll()
        }
        print("300 tasks on three nodes have the article after \(time(since: start)): \(await loads.count) load.")

        start = .now
        try await nodes[0].removeValue(forKey: 7)
        while nodes.contains(where: { $0.local[7] != nil }) { await Task.yield() }
        print("A removal on the first node is one on all after \(time(since: start)).")

        for node in nodes { _ = try await node.value(forKey: 7) { _ in "article 7, new" } }
        await network.stop()
        start = .now
        try await nodes[0].setValue("article 7, written alone", forKey: 7)
        let write = time(since: start)
        start = .now
        _ = try await nodes[0].value(forKey: 8) { "article \($0)" }
        print("The server has stopped: a write takes \(write), and a load \(time(since: start)).")
        print("The first node has \"\(nodes[0].local[7] ?? "")\", and the second \"\(nodes[1].local[7] ?? "")\".")

        try await network.start()
        start = .now
        while nodes.contains(where: { $0.local[7] != nil || $0.health != .current }) {
            try await Task.sleep(for: .milliseconds(1))
        }
        print("The server is back: after \(time(since: start)) no node has an old article.")

        for node in nodes {
            await node.close()
            try await node.local.manager.close()
        }
        await network.end()
    }

    private static func open(_ network: Network) async throws -> [SharedCache<Int, String>] {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-nodes")
        var nodes: [SharedCache<Int, String>] = []
        for number in 1...3 {
            // The events that are logged are those that the program prints.
            let manager = try await CacheManager.open(
                url: folder.appendingPathComponent("\(number).sqlite"), configuration: .init(log: { _ in }))
            let articles: Cache<Int, String> = try await manager.cache(
                named: "articles", version: "1", maxAge: .days(7))
            nodes.append(try await articles.shared(through: network.node(), options: .init(catchUpLimit: .seconds(10))))
        }
        return nodes
    }

    private static func time(since start: ContinuousClock.Instant) -> String {
        let time = (ContinuousClock.now - start) / .milliseconds(1)
        return time < 10 ? "\((time * 10).rounded() / 10) ms" : "\(Int(time)) ms"
    }
}

actor Loads {
    private(set) var count = 0
    func add() { count += 1 }
}
