import Foundation
import Larder
import Observation

@MainActor @Observable
final class TitleList {
    private(set) var titles: [Int: String] = [:]

    func follow(_ cache: Cache<Int, String>) async throws {
        let changes = cache.changes()
        titles = try await cache.snapshot()
        for await change in changes {
            if change.isReset {
                titles = try await cache.snapshot()
            } else {
                titles.merge(change.updated) { $1 }
                for id in change.removed { titles[id] = nil }
            }
        }
    }
}

/// The snippets of the guide about apps that need no view.
enum AppSnippets {
    private struct Surprise: Error {}

    static func run(_ file: URL) async throws {
        let options = CacheOptions(clearsInBackground: true)
        let small = CacheManager.Configuration(sizeLimit: 200 << 20, freeSpaceFloor: 500 << 20)
        let manager = try await CacheManager.open(url: file, configuration: small)
        let titles: Cache<Int, String> = try await manager.cache(
            named: "titles", version: "1", maxAge: .days(1), options: options)
        let photos: Cache<String, Data> = try await manager.cache(named: "photos", version: "1", maxAge: .days(1))
        let list = await TitleList()
        let following = Task { try await list.follow(titles) }
        titles[1] = "one"
        following.cancel()

        let url = try await photos.fileURL(forKey: "cat")
        guard url == nil else { throw Surprise() }

        try await manager.suspend()
        try await manager.whileResumed { try await refresh() }
        try await manager.close()
    }

    private static func refresh() async throws {}
}

#if canImport(Darwin)
private enum GroupSnippets {
    static func run() async throws {
        var configuration = CacheManager.Configuration()
        configuration.fileProtection = .completeUntilFirstUserAuthentication

        let group = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: "group.org.example.app")
        guard let file = group?.appendingPathComponent("shared.sqlite") else { return }
        let manager = try await CacheManager.open(url: file)
        try await manager.close()
    }
}
#endif
