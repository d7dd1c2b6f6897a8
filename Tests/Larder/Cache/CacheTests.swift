import Foundation
import Larder
import LarderTestSupport
import Testing

struct Article: Codable, Hashable, Sendable {
    var id: Int
    var title: String
}

struct CacheTests {
    private let place: TemporaryStore

    init() throws {
        place = try TemporaryStore(of: #fileID)
    }

    private func articles(_ manager: CacheManager) throws -> Cache<Int, Article> {
        try manager.cache(
            named: "articles", version: "1", maxAge: .days(7),
            options: CacheOptions().steady)
    }

    @Test func `a value comes back, also after the store was closed`() throws {
        do {
            let manager = try place.manager()
            let cache = try articles(manager)
            cache[1] = Article(id: 1, title: "one")
            #expect(cache[1] == Article(id: 1, title: "one"))
            #expect(cache[2] == nil)
            try manager.close()
        }
        let manager = try place.manager()
        let cache = try articles(manager)
        #expect(try cache.value(forKey: 1) == Article(id: 1, title: "one"))
        #expect(cache.statistics.diskHits == 1)
        #expect(try cache.value(forKey: 1) == Article(id: 1, title: "one"))
        #expect(cache.statistics.memoryHits == 1)
    }

    @Test func `a removed value is gone from both tiers`() throws {
        let manager = try place.manager()
        let cache = try articles(manager)
        cache[1] = Article(id: 1, title: "one")
        cache[1] = nil
        #expect(cache[1] == nil)
        #expect(try cache.contains(1) == false)
        #expect(try cache.count == 0)
        #expect(try cache.sizeOnDisk == 0)
    }

    @Test func `every kind of call works`() throws {
        let manager = try place.manager()
        let cache = try articles(manager)
        try cache.setValues((0..<1000).map { ($0, Article(id: $0, title: "\($0)")) })
        #expect(try cache.count == 1000)
        #expect(cache.map(\.key) == Array(0..<1000))
        #expect(try cache.values(forKeys: [1, 5, 2000]).count == 2)
        #expect(try cache.snapshot().count == 1000)
        #expect(try cache.removeAll { $0.value.id >= 500 } == 500)
        #expect(try cache.removeAll(whereMetadata: { key, _ in key >= 400 }) == 100)
        #expect(try cache.count == 400)
        _ = cache[7]
        #expect(try cache.trim(toCount: 10) == 390)
        #expect(cache.map(\.key) == [1, 5, 7] + Array(393..<400))
        try cache.update(7) { $0?.title = "new" }
        #expect(cache[7]?.title == "new")
        #expect(
            try cache.update(8) {
                $0 = Article(id: 8, title: "eight"); return 3
            } == 3)
        #expect(try cache.removeValue(forKey: 8)?.title == "eight")
        try cache.setValue(Article(id: 9, title: ""), forKey: 9, maxAge: .hours(1), extendedData: Data(), pinned: true)
        let entry = try #require(try cache.entry(forKey: 9))
        #expect(entry.extendedData == Data())
        #expect(entry.metadata.isPinned)
        #expect(entry.metadata.expiresAt == entry.metadata.writtenAt + 3600)
        try cache.setExtendedData(Data([1]), forKey: 9)
        #expect(try cache.extendedData(forKey: 9) == Data([1]))
        #expect(cache[9] == Article(id: 9, title: ""))
        try cache.removeAll()
        #expect(try cache.isEmpty)
        #expect(cache[9] == nil)
        cache[1] = Article(id: 1, title: "after")
        #expect(cache.map(\.key) == [1])
        let info = try manager.cacheInfo()
        #expect(info.map(\.name) == ["articles"])
        #expect(info.map(\.count) == [1])
    }

    @Test func `a transaction is all or nothing`() throws {
        let manager = try place.manager()
        let cache = try articles(manager)
        let counts: Cache<String, Int> = try manager.cache(named: "counts", version: "1", maxAge: .unlimited)
        struct Stop: Error {}
        #expect(throws: Stop.self) {
            try manager.transaction { transaction in
                try transaction.setValue(Article(id: 1, title: ""), forKey: 1, in: cache)
                try transaction.setValue(1, forKey: "articles", in: counts)
                #expect(try transaction.value(forKey: "articles", in: counts) == 1)
                #expect(counts["articles"] == nil)
                throw Stop()
            }
        }
        #expect(cache[1] == nil)
        let made = try manager.transaction { transaction in
            try transaction.setValue(Article(id: 1, title: ""), forKey: 1, in: cache)
            try transaction.setValue(1, forKey: "articles", in: counts)
            let error = #expect(throws: CacheError.self) { try cache.remove(1) }
            #expect(error?.code == .reentrant)
            return try transaction.value(forKey: "articles", in: counts)
        }
        #expect(made == 1)
        #expect(cache[1] == Article(id: 1, title: ""))
        #expect(counts["articles"] == 1)
    }
}
