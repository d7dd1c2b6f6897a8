import Foundation
import Larder

struct Article: Codable, Sendable {
    var title: String
    var readings = 0
}

/// Keeps three articles in a store.
///
/// Run it twice: the second run finds the entries of the first.
@main
struct QuickStart {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-quickstart")
        let manager = try CacheManager(url: folder.appendingPathComponent("app.sqlite"))
        print("The store is one file: \(folder.path)/app.sqlite\n")

        let articles: Cache<Int, Article> = try await manager.cache(named: "articles", version: "3", maxAge: .days(7))
        if try articles.isEmpty {
            articles[42] = Article(title: "On shelves")
            try await articles.setValues([7: Article(title: "On jars"), 11: Article(title: "On labels")])
            say("Write", "the cache was empty, so three articles were stored")
        } else {
            say("Restart", "an earlier run left \(try articles.count) articles")
        }

        let title = articles[42]?.title ?? "missing"
        for _ in 1...2 { _ = articles[42] }
        let reads = articles.statistics
        say("Read", "\"\(title)\" three times: \(reads.diskHits) from disk, \(reads.memoryHits) from memory")

        try await articles.update(42) { $0?.readings += 1 }
        say("Update", "this was reading number \(articles[42]?.readings ?? 0) of article 42")

        say("Loop", articles.map { "\($0.key) \($0.value.title)" }.joined(separator: ", "))
        try await load(articles)
        try expire(manager)
        try changeVersion(manager)
        try await manager.close()
    }

    /// Asks for a missing value from a hundred tasks at once.
    private static func load(_ articles: Cache<Int, Article>) async throws {
        let loads = Loads()
        try await withThrowingTaskGroup(of: Article.self) { group in
            for _ in 1...100 {
                group.addTask {
                    try await articles.value(forKey: 8) { _ in
                        await loads.increment()
                        return Article(title: "On lids")
                    }
                }
            }
            try await group.waitForAll()
        }
        say("Load", "100 tasks asked for missing article 8, and the closure ran \(await loads.count) time")
        articles[8] = nil
    }

    /// Looks at the store with a clock that is eight days ahead.
    private static func expire(_ manager: CacheManager) throws {
        guard let url = manager.url else { return }
        var configuration = CacheManager.Configuration()
        configuration.clock = { Date() + 8 * 86_400 }
        let later = try CacheManager(url: url, configuration: configuration)
        let articles: Cache<Int, Article> = try later.cache(named: "articles", version: "3", maxAge: .days(7))
        say("Age", "after eight days, articles[42] is \(articles[42] == nil ? "nil, because it has expired" : "there")")
        try later.close()
    }

    /// Writes under one version, and opens another.
    private static func changeVersion(_ manager: CacheManager) throws {
        let old: Cache<String, [Int]> = try manager.cache(named: "lists", version: "1", maxAge: .unlimited)
        old["recent"] = [42, 7]
        let new: Cache<String, [String]> = try manager.cache(named: "lists", version: "2", maxAge: .unlimited)
        say("Version", "\"lists\" had 1 entry in version 1, and has \(try new.count) in version 2")
    }

    private actor Loads {
        private(set) var count = 0
        func increment() { count += 1 }
    }

    private static func say(_ step: String, _ text: String) {
        print(step.padding(toLength: 9, withPad: " ", startingAt: 0) + text)
    }
}
