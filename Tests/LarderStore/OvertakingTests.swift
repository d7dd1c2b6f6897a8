import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Memory learns which keys are written or removed while loads run, in time to refuse their results.
struct OvertakingTests {
    /// The memory in front of a cache, which keeps the keys that are overtaken.
    private final class ToldMemory: TierDelegate {
        /// The keys, or "all", with the number of rows that were committed by then.
        let overtaken = Told<(keys: [StoredKey]?, rows: String?)>()
        private let place: StorePlace

        init(_ place: StorePlace) { self.place = place }

        func overtakeLoads(_ loads: Overtaken) {
            let keys: [StoredKey]? =
                switch loads {
                case .keys(let keys): keys
                case .all: nil
                // Of these the suite of tags knows.
                case .tagged, .prefix: []
                }
            if keys?.isEmpty == true { return }
            do {
                var other = try place.otherConnection()
                overtaken.add(
                    (keys, try other.text("SELECT count(*) FROM entry JOIN cache ON cache.id = cache WHERE state = 0")))
            } catch {
                overtaken.add((keys, "\(error)"))
            }
        }

        func rowsAreRemoved() {}
        func rowsWereRemoved(_ rows: [RemovedRow]) {}
        func storeWasOpened(_ watch: CommitWatch, isSameFile: Bool) {}
        func takeAccesses(at now: Int64) -> [Access] { [] }
        func takeActivity() -> [Int64: Int64] { [:] }

        private static func name(_ key: StoredKey) -> String {
            if case .integer(let number) = key { "\(number)" } else { "" }
        }

        /// Returns the keys since an index, with the committed rows.
        func keys(from index: Int = 0) -> [String] {
            overtaken.all.dropFirst(index).map { keys, rows in
                "\(keys.map { $0.map(Self.name).joined(separator: ",") } ?? "all") \(rows ?? "")"
            }
        }
    }

    private let place: StorePlace
    private let clock = StoreClock()

    init() throws { place = try StorePlace() }

    private func open() throws -> (store: Store, rows: CacheRows, memory: ToldMemory) {
        let store = try place.open(clock)
        let (rows, memory) = (try store.open(.a), ToldMemory(place))
        rows.attach(memory)
        return (store, rows, memory)
    }

    @Test func `while a load runs memory learns of keys in the transaction that writes or removes them`() throws {
        let (store, rows, memory) = try open()
        try rows.run(.put([EntryWrite(1, "one")]))
        #expect(memory.keys() == [], "no load runs")
        store.loadCount.change(by: 1)
        try rows.run(.put([EntryWrite(1, "one"), EntryWrite(2, "two")]))
        #expect(memory.keys() == ["1,2 1"])
        try rows.run(.remove([.integer(1)]))
        try rows.run(.take(.integer(3)))
        try rows.run(.change(.integer(2), .pin(true)))
        try store.transaction { state in _ = try state.perform(.put([EntryWrite(4, "four")]), on: rows) }
        try rows.run(.clear)
        #expect(memory.keys(from: 1) == ["1 2", "3 1", "2 1", "4 1", "all 2", "all 0"])
        rows.detach(memory)
    }

    @Test func `whatever retires a cache overtakes its loads in the transaction and after its commit`() throws {
        let (store, rows, memory) = try open()
        store.loadCount.change(by: 1)
        defer { store.loadCount.change(by: -1) }
        try rows.run(.put([EntryWrite(1, "one")]))
        _ = try store.removeCache(named: "a")
        // Another thread may open the cache under the same version as soon as the writer is free.
        #expect(memory.keys(from: 1) == ["all 1", "all 0"])
        let again = try store.open(.a)
        try again.run(.put([EntryWrite(1, "one")]))
        _ = try store.open(CacheDeclaration(name: "a", version: "2", codec: "data", ageRule: .unlimited))
        #expect(memory.keys(from: 4) == ["all 1", "all 0"])
        rows.detach(memory)
    }

    @Test func `removals by tag, by choice and of all caches are told of after their commit`() throws {
        let (store, rows, memory) = try open()
        let tagged = (Int64(1)...4).map { number in
            var meta = RowMeta()
            if number < 3 { meta.tags = ["t"] }
            return EntryWrite(key: .integer(number), payload: Data("value".utf8), writtenAt: 1000, meta: meta)
        }
        try rows.run(.put(tagged))
        store.loadCount.change(by: 1)
        defer { store.loadCount.change(by: -1) }
        #expect(try rows.removeAll(tagged: "t") == 2)
        #expect(memory.keys() == ["1,2 2"])
        let header = try #require(try rows.header(.integer(3)))
        #expect(try rows.remove([header], .removed) == 1)
        #expect(memory.keys(from: 1) == ["3 1"])
        let last = try #require(try rows.header(.integer(4)))
        #expect(try rows.remove([last], .expired) == 1)
        #expect(memory.keys().count == 2, "an expiration is no removal")
        try store.removeAll()
        #expect(memory.keys(from: 2) == ["all 0", "all 0"])
        rows.detach(memory)
    }

    @Test func `requests that store what a load has made overtake nothing by themselves`() throws {
        let (store, rows, memory) = try open()
        try rows.run(.put([EntryWrite(1, "one")]))
        store.loadCount.change(by: 1)
        defer { store.loadCount.change(by: -1) }
        #expect(try rows.run(.put([EntryWrite(2, "two")], by: .load(1), if: When { false })).rows.isEmpty)
        #expect(try rows.run(.put([EntryWrite(2, "two")], by: .load(1), if: When { true })).rows.count == 1)
        #expect(try rows.run(.remove([.integer(1)], by: .load(1), if: When { false })).rows.isEmpty)
        #expect(try rows.text(1) == "one" && rows.text(2) == "two")
        let header = try #require(try rows.header(.integer(1)))
        #expect(try rows.run(.change(.integer(1), .renew(header, at: header.writtenAt + 1))).rows.count == 1)
        #expect(try rows.run(.change(.integer(1), .renew(header, at: header.writtenAt + 2))).rows.isEmpty)
        #expect(try rows.header(.integer(1))?.writtenAt == header.writtenAt + 1)
        #expect(try rows.run(.remove([.integer(1)], by: .load(1), if: When { true })).rows.count == 1)
        #expect(memory.keys() == [])
        rows.detach(memory)
    }
}
