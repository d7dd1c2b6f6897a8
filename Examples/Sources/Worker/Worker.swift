import Dispatch
import Foundation
import Larder
import LarderShared

/// A server: two nodes, 200 tasks that ask for pages, and an end in order when a signal comes.
///
/// Its nodes are in one process, with a tier in memory. On two machines each has a process of its own, and a `RedisTier`.
@main
struct Worker {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-worker-\(UUID().uuidString)")
        defer { do { try FileManager.default.removeItem(at: folder) } catch { print(error) } }
        let tier = MemorySharedTier()
        let nodes = [
            try await Node(folder.appendingPathComponent("a.sqlite"), tier),
            try await Node(folder.appendingPathComponent("b.sqlite"), MemorySharedTier(joining: tier)),
        ]
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self)
        signal(SIGTERM, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: SIGTERM)
        source.setEventHandler { @Sendable in continuation.yield() }
        source.resume()

        let origin = Origin()
        let requests = (0..<200).map { number in
            Task {
                var page = number
                while !Task.isCancelled {
                    do { _ = try await nodes[number % 2].page(page % 50, from: origin) } catch { return }
                    page += 1
                    // A hit neither waits nor looks whether its task is cancelled. A server waits for its next request here.
                    await Task.yield()
                }
            }
        }
        while await origin.count < 50 { await Task.yield() }

        // What an orchestrator does. After some seconds it would kill the process, which loses nothing that was stored.
        kill(getpid(), SIGTERM)
        for await _ in signals { break }
        source.cancel()
        for request in requests { request.cancel() }
        for request in requests { await request.value }
        print("200 tasks on two nodes have ended, and the origin made \(await origin.count) pages.")
        for node in nodes {
            do { try await node.close() } catch { print(error) }
        }
        print("Both nodes are closed.")
    }
}

/// A store, and the cache that it shares.
struct Node: Sendable {
    private let manager: CacheManager
    private let pages: SharedCache<Int, String>

    init(_ file: URL, _ tier: MemorySharedTier) async throws {
        manager = try await CacheManager.open(url: file)
        let cache = try await manager.cache(
            of: Int.self, String.self, named: "pages", version: "1", maxAge: .minutes(10),
            options: CacheOptions(disk: DiskLimits(sizeLimit: 64 << 20)))
        pages = try await cache.shared(through: tier)
    }

    func page(_ number: Int, from origin: Origin) async throws -> String {
        try await pages.value(forKey: number) { number in await origin.page(number) }
    }

    /// First what is shared, then the store.
    func close() async throws {
        await pages.close()
        try await manager.close()
    }
}

/// What renders pages.
actor Origin {
    private(set) var count = 0

    func page(_ number: Int) -> String {
        count += 1
        return "page \(number)"
    }
}
