import Foundation
import Larder
import LarderRedis

/// What connects the nodes: a server of its own, which keeps nothing, or a tier in memory.
actor Network {
    private let server: String?
    private var process: Process?
    private let port = Int.random(in: 20_000..<30_000)
    private let memory = MemorySharedTier()
    private var nodes: [MemorySharedTier] = []

    init() async throws {
        server = ["/usr/bin/redis-server", "/usr/bin/valkey-server", "/opt/homebrew/bin/redis-server"].first {
            FileManager.default.isExecutableFile(atPath: $0)
        }
        try start()
    }

    nonisolated var description: String {
        guard let server else {
            return "The tier is in memory. For a server: apt-get install redis-server, or brew install redis."
        }
        return "The tier is \(server) on port \(port)."
    }

    /// Returns the tier for another node.
    func node() -> any SharedTier {
        if server != nil { return RedisTier(url: "redis://127.0.0.1:\(port)", prefix: "example") }
        nodes.append(MemorySharedTier(joining: memory))
        return nodes[nodes.count - 1]
    }

    func start() throws {
        for node in nodes { node.isAvailable = true }
        guard let server else { return }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: server)
        process.arguments = ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        self.process = process
    }

    func stop() async {
        for node in nodes { node.isAvailable = false }
        await end()
    }

    func end() async {
        guard let process else { return }
        await withCheckedContinuation { continuation in
            process.terminationHandler = { _ in continuation.resume() }
            // It keeps nothing, and a signal that it could ignore is blocked in what a task starts.
            kill(process.processIdentifier, SIGKILL)
        }
        self.process = nil
    }
}
