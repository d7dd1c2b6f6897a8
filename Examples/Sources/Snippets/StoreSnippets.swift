import Foundation
import Larder

/// The snippets of the guides about stores: opening, limits, processes, damage and failures.
enum StoreSnippets {
    private struct Surprise: Error {}
    private struct Article: Codable, Sendable { var title: String }

    static func run(_ folder: URL) async throws {
        try await opening(folder)
        try choosing(folder)
        try limits(folder.appendingPathComponent("limited.sqlite"))
        try await processes(folder.appendingPathComponent("shared.sqlite"))
        try await changesOfOthers()
        try await durability(folder.appendingPathComponent("durable.sqlite"))
        try await failures()
        try compatibility(folder.appendingPathComponent("compatible.sqlite"))
    }

    private static func opening(_ folder: URL) async throws {
        setenv("XDG_CACHE_HOME", folder.path, 1)
        let file = folder.appendingPathComponent("other.sqlite")
        do {
            let manager = try await CacheManager.open(name: "MyApp")
            let other = try await CacheManager.open(url: file)
            let inMemory = try CacheManager.inMemory()
            try await manager.close()
            try await other.close()
            try await inMemory.close()
        }
        do {
            let bundled = folder.appendingPathComponent("Bundled.sqlite")
            let built = try await CacheManager.open(name: "MyApp")
            try await built.bake(to: bundled)
            try await built.close()
            try await CacheManager.deleteStore(named: "MyApp")
            let manager = try await CacheManager.open(name: "MyApp", priming: bundled)
            try await manager.close()
        }
        do {
            let configuration = CacheManager.Configuration(
                durability: .powerLoss, sizeLimit: 2 << 30, log: { message in print(message) })
            try await CacheManager.open(url: file, configuration: configuration).close()
        }
        try read(file)
    }

    private static func read(_ file: URL) throws {
        let reader = try CacheManager(url: file, configuration: .init(access: .readOnly))
        try reader.close()
        let manager = try CacheManager(name: "MyApp")
        try manager.close()
        try CacheManager.deleteStore(named: "MyApp")
    }

    private static func choosing(_ folder: URL) throws {
        let manager = try CacheManager(url: folder.appendingPathComponent("chosen.sqlite"))
        let options = CacheOptions(
            memory: MemoryLimits(byteLimit: 8 << 20),
            disk: DiskLimits(countLimit: 10_000, sizeLimit: 512 << 20))
        let pages: Cache<String, Data> = try manager.cache(
            named: "pages", version: "1", maxAge: .days(30), options: options)
        let stamped: Cache<Int, Int> = try manager.cache(named: "ranks", version: .buildStamp, maxAge: .days(1))
        pages["/"] = Data([1])
        stamped[1] = 1

        let sessions: Cache<String, String> = try manager.cache(
            named: "sessions", version: "1", maxAge: .minutes(10).sinceLastAccess)
        sessions["ada"] = "token"
        try sessions.setValue("token", forKey: "bob", maxAge: .hours(1))
        try sessions.touch("ada")
        guard try sessions.count == 2 else { throw Surprise() }

        pages.memory.byteLimit = 16 << 20
        try pages.disk.setLimits(DiskLimits(countLimit: 100_000))
        guard pages.disk.limits.countLimit == 100_000 else { throw Surprise() }

        try pages.setPinned(true, forKey: "/")

        try pages.removeExpired()
        try pages.trim(toCount: 1_000)
        let report = try manager.maintain()
        print(report.expired, report.trimmed, report.freedBytes)
        try manager.close()
    }

    private static func limits(_ file: URL) throws {
        let configuration = CacheManager.Configuration(sizeLimit: 2 << 30, freeSpaceFloor: 64 << 20)
        let manager = try CacheManager(url: file, configuration: configuration)
        try manager.close()
    }

    private static func processes(_ shared: URL) async throws {
        let manager = try await manager(shared)
        let counts: Cache<String, Int> = try await manager.cache(named: "counts", version: "1", maxAge: .unlimited)
        do {
            try await counts.setValue(1, forKey: "visits")
        } catch let error as CacheError where error.code == .busy {
            print("another process has been writing for two seconds")
        }
        try await manager.close()
    }

    private static func manager(_ shared: URL) async throws -> CacheManager {
        try onOneThread(shared)
        return try await CacheManager.open(url: shared)
    }

    private static func onOneThread(_ shared: URL) throws {
        let configuration = CacheManager.Configuration(busyTimeout: .seconds(2), sizeLimit: 1 << 30)
        let manager = try CacheManager(url: shared, configuration: configuration)
        let counts: Cache<String, Int> = try manager.cache(named: "counts", version: "1", maxAge: .unlimited)
        try counts.update("visits") { $0 = ($0 ?? 0) + 1 }

        try manager.transaction { transaction in
            let visits = try transaction.value(forKey: "visits", in: counts) ?? 0
            try transaction.setValue(visits + 1, forKey: "visits", in: counts)
        }
        guard counts["visits"] == 2 else { throw Surprise() }

        try manager.suspend()
        manager.resume()
        try manager.close()
    }

    private static func changesOfOthers() async throws {
        let manager = try CacheManager.inMemory()
        let counts: Cache<String, Int> = try await manager.cache(named: "counts", version: "1", maxAge: .unlimited)
        let task = Task {
            for await change in counts.changes() {
                print(change.updated["visits"] ?? 0)
                break
            }
        }
        task.cancel()
        await task.value
    }

    private static func durability(_ file: URL) async throws {
        try strict(file)
        let manager = try await CacheManager.open(url: file)
        let report = try await manager.verify(repairing: true)
        if let original = report.setAside {
            print("\(report.lost) entries were lost; the original is \(original.path)")
        }
        let options = CacheOptions(onFullDisk: .fail)
        let drafts: Cache<Int, String> = try await manager.cache(
            named: "drafts", version: "1", maxAge: .unlimited, options: options)
        do {
            try await drafts.setValue("text", forKey: 1)
        } catch let error as CacheError where error.code == .storageUnavailable {
            try await drafts.setValue("text", forKey: 1)
        }
        try await manager.close()
    }

    private static func strict(_ file: URL) throws {
        do {
            let manager = try CacheManager(url: file, configuration: .init(durability: .powerLoss))
            let options = CacheOptions(onFullDisk: .fail)
            let drafts: Cache<Int, String> = try manager.cache(
                named: "drafts", version: "1", maxAge: .unlimited, options: options)
            drafts[1] = "text"
            try manager.close()
        }
        let strict = try CacheManager(url: file, configuration: .init(recovery: .fail))
        try strict.close()
    }

    private static func failures() async throws {
        let manager = try CacheManager.inMemory()
        let articles: Cache<Int, Article> = try await manager.cache(named: "articles", version: "3", maxAge: .days(7))
        let article = Article(title: "On shelves")
        do {
            try await articles.setValue(article, forKey: 7)
        } catch let error as CacheError {
            print(error.code, error.message)
        }
        try await codes(articles, article)
        try failuresOnOneThread(articles, article)
        print(try await articles.explain(7))

        print(articles)
        print(manager)

        let statistics = articles.statistics
        print(statistics.hitRate ?? 0, statistics.failures)

        let careful = CacheOptions(undecodable: .keep)
        _ = careful
        let listening = Task {
            for await event in manager.events {
                print(event.message)
            }
        }
        try await manager.close()
        await listening.value
    }

    private static func failuresOnOneThread(_ articles: Cache<Int, Article>, _ article: Article) throws {
        do throws(CacheError) {
            try articles.setValue(article, forKey: 7)
        } catch {
            print(error.code, error.message)
        }
    }

    private static func compatibility(_ file: URL) throws {
        let configuration = CacheManager.Configuration(newerSchema: .recreate)
        let manager = try CacheManager(url: file, configuration: configuration)
        try manager.close()
    }

    private static func codes(_ articles: Cache<Int, Article>, _ article: Article) async throws {
        do {
            try await articles.setValue(article, forKey: 7)
        } catch let error as CacheError {
            switch error.code {
            case .busy, .storageFull: print("try again later")
            default: print(error.message)
            }
        }
    }

    /// Compiled, not run: it would open a store in the user's caches directory.
    private static func glossary() throws {
        // A manager opens a store.
        let manager = try CacheManager(name: "MyApp")
        // A handle of the cache "articles".
        let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "3", maxAge: .days(7))
        // An entry: key, value and metadata.
        articles[42] = Article(title: "On shelves")
        for info in try manager.cacheInfo() { print(info.name, info.version, info.count) }
    }
}
