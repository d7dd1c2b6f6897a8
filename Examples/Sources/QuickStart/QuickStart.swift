import Foundation
import Larder

/// What the example keeps.
struct Article: Codable, Sendable {
    var title: String
    var readings: Int
}

/// Keeps a few articles in a folder of its own: run it twice, and the second run finds what the first one wrote.
@main
struct QuickStart {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-quickstart")
        let manager = try CacheManager(url: folder.appendingPathComponent("app.sqlite"))
        print("The store is \(manager.url?.path ?? "in memory"). Delete its folder to start anew.")

        let articles: Cache<Int, Article> = try await manager.cache(named: "articles", version: "3", maxAge: .days(7))

        if try articles.isEmpty {
            step("Nothing is there yet: this is the first run, or the last one was more than seven days ago.")
            articles[42] = Article(title: "On shelves", readings: 0)
            try await articles.setValues([
                7: Article(title: "On jars", readings: 0), 11: Article(title: "On labels", readings: 0),
            ])
        } else {
            step("An earlier run of the program left \(try articles.count) articles.")
        }

        step("The first read asks the disk, or memory if the value was written just now; the next ones find it there.")
        for _ in 1...3 { _ = articles[42] }
        let numbers = articles.statistics
        print("  \(numbers.diskHits) from disk, \(numbers.memoryHits) from memory, \(numbers.misses) misses")

        step("A value is changed in one step, whoever else is at it.")
        try await articles.update(42) { $0?.readings += 1 }
        print("  read in \(articles[42]?.readings ?? 0) runs of the program")

        step("A sub-cache is a sequence, in key order.")
        for (id, article) in articles {
            print("  \(id): \(article.title)")
        }

        try expiry(manager)
        try versions(manager)
        try await manager.close()
        step("Run it again: the articles stay.")
    }

    /// Looks at the store with a clock that is eight days ahead.
    private static func expiry(_ manager: CacheManager) throws {
        step("In eight days they are over, which a manager with another clock can see.")
        guard let url = manager.url else { return }
        var configuration = CacheManager.Configuration()
        configuration.clock = { Date() + 8 * 86_400 }
        let later = try CacheManager(url: url, configuration: configuration)
        let articles: Cache<Int, Article> = try later.cache(named: "articles", version: "3", maxAge: .days(7))
        print("  then: \(try articles.count) articles, and articles[42] is \(articles[42] == nil ? "nil" : "there")")
        try later.close()
    }

    /// Writes under one version, and opens another.
    private static func versions(_ manager: CacheManager) throws {
        step("A sub-cache opened under another version is empty: what was written for the old one is gone.")
        let old: Cache<String, [Int]> = try manager.cache(named: "lists", version: "1", maxAge: .unlimited)
        old["recent"] = [42, 7]
        let new: Cache<String, [String]> = try manager.cache(named: "lists", version: "2", maxAge: .unlimited)
        print("  version 2 has \(try new.count) entries, and the handle on version 1 reads \(old["recent"] ?? [])")
        for info in try manager.cacheInfo() {
            print("  \(info.name), version \(info.version): \(info.count) entries, \(info.sizeOnDisk) bytes")
        }
    }

    private static func step(_ text: String) {
        print("\n" + text)
    }
}
