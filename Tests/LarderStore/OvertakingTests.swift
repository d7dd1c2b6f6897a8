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
        let overtaken = Told<(keys: [StoredKey]?, except: Int?, rows: String?)>()
        private let place: StorePlace

        init(_ place: StorePlace) { self.place = place }

        func overtakeLoads(_ loads: Overtaken) {
            let (keys, except): ([StoredKey]?, Int?) =
                switch loads {
                case .keys(let keys, let except): (keys, except)
                case .all: (nil, nil)
                // Of these the suite of tags knows.
                case .tagged, .prefix: ([], nil)
                }
            if keys?.isEmpty == true { return }
            do {
                var other = try place.otherConnection()
                overtaken.add(
                    (
                        keys, except,
                        try other.text("SELECT count(*) FROM entry JOIN cache ON cache.id = cache WHERE state = 0")
                    ))
            } catch {
                overtaken.add((keys, except, "\(error)"))
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
            overtaken.all.dropFirst(index).map { keys, except, rows in
                let names = keys.map { $0.map(Self.name).joined(separator: ",") } ?? "all"
                return "\(names)\(except.map { " but \($0)" } ?? "") \(rows ?? "")"
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

    @Test func `while a load runs memory learns of keys before a commit and after it`() throws {
        let (store, rows, memory) = try open()
        try rows.run(.put([EntryWrite(1, "one")]))
        #expect(memory.keys() == [], "no load runs")
        store.loadCount.change(by: 1)
        try rows.run(.put([EntryWrite(1, "one"), EntryWrite(2, "two")]))
        #expect(memory.keys() == ["1,2 1", "1,2 2"])
        try rows.run(.remove([.integer(1)]))
        try rows.run(.take(.integer(3)))
        try rows.run(.change(.integer(2), .pin(true)))
        try store.transaction { state in _ = try state.perform(.put([EntryWrite(4, "four")]), on: rows) }
        try rows.run(.clear)
        // A body keeps no keys of changes without a memory.
        #expect(
            memory.keys(from: 2) == [
                "1 2", "1 1", "3 1", "3 1", "2 1", "2 1", "4 1", "all 2", "all 2", "all 0",
            ])
        rows.detach(memory)
    }

    @Test func `whatever retires a cache overtakes its loads in the transaction and after its commit`() throws {
        let (store, rows, memory) = try open()
        store.loadCount.change(by: 1)
        defer { store.loadCount.change(by: -1) }
        try rows.run(.put([EntryWrite(1, "one")]))
        _ = try store.removeCache(named: "a")
        // Another thread may open the cache under the same version as soon as the writer is free.
        #expect(memory.keys(from: 2) == ["all 1", "all 0"])
        let again = try store.open(.a)
        try again.run(.put([EntryWrite(1, "one")]))
        _ = try store.open(CacheDeclaration(name: "a", version: "2", codec: "data", ageRule: .unlimited))
        #expect(memory.keys(from: 6) == ["all 1", "all 0"])
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

    @Test func `what a load stores overtakes the other loads, and only once it is committed`() throws {
        let (store, rows, memory) = try open()
        try rows.run(.put([EntryWrite(1, "one")]))
        store.loadCount.change(by: 1)
        defer { store.loadCount.change(by: -1) }
        #expect(try rows.run(.put([EntryWrite(2, "two")], by: .load(1), if: When { false })).rows.isEmpty)
        #expect(try rows.run(.put([EntryWrite(2, "two")], by: .load(1), if: When { true })).rows.count == 1)
        #expect(try rows.run(.remove([.integer(1)], by: .load(1), if: When { false })).rows.isEmpty)
        #expect(try rows.text(1) == "one" && rows.text(2) == "two")
        let header = try #require(try rows.header(.integer(1)))
        func renew(at moment: Int64) -> Change { .change(.integer(1), .renew(header, at: moment), by: .load(1)) }
        #expect(try rows.run(renew(at: header.writtenAt + 1)).rows.count == 1)
        #expect(try rows.run(renew(at: header.writtenAt + 2)).rows.isEmpty)
        #expect(try rows.header(.integer(1))?.writtenAt == header.writtenAt + 1)
        #expect(try rows.run(.remove([.integer(1)], by: .load(1), if: When { true })).rows.count == 1)
        #expect(memory.keys() == ["2 but 1 2", "1 but 1 2", "1 but 1 1"])
        rows.detach(memory)
    }

    @Test func `a change with a memory of its own overtakes the loads of that alone`() throws {
        let (store, rows, memory) = try open()
        let own = ToldMemory(place)
        store.loadCount.change(by: 1)
        defer { store.loadCount.change(by: -1) }
        try rows.run(Change(.put([EntryWrite(1, "one")]), in: own))
        try store.transaction { _ = try $0.perform(Change(.remove([.integer(1)]), in: own), on: rows) }
        #expect(own.keys() == ["1 0", "1 1", "1 1", "1 0"] && memory.keys() == [])
        rows.detach(memory)
    }

    /// A load may begin between a change and its commit, and has read what the change replaces.
    @Test func `a load that begins in the transaction of a change is overtaken after its commit`() throws {
        let (store, rows, memory) = try open()
        defer { store.loadCount.change(by: -1) }
        try store.transaction { state in
            try state.perform(Change(.put([EntryWrite(1, "one")]), in: memory), on: rows)
            store.loadCount.change(by: 1)
        }
        #expect(memory.keys() == ["1 1"])
        rows.detach(memory)
    }

    /// Memory counts the removals that it has not heard the end of, and serves nothing unseen until then.
    @Test func `the memory that hears of a removal under the lock hears its end, and no other does`() throws {
        let (_, rows, _) = try open()
        let (first, second) = (CountingMemory(), CountingMemory())
        rows.attach(first)
        first.whenRemoved = { rows.attach(second) }
        try rows.run(.put([EntryWrite(1, "one")]))
        let header = try #require(try rows.header(.integer(1)))
        #expect(try rows.remove([header], .removed) == 1)
        #expect(first.calls == ["are", "were"] && second.calls == [])
        for memory in [first, second] { rows.detach(memory) }
    }

    private final class CountingMemory: TierDelegate {
        private struct State {
            var calls: [String] = []
            var whenRemoved: (@Sendable () -> Void)?
        }
        private let state = Locked(State())
        var calls: [String] { state.value.calls }
        var whenRemoved: (@Sendable () -> Void)? {
            get { state.value.whenRemoved }
            set { state.change { $0.whenRemoved = newValue } }
        }

        func rowsAreRemoved() {
            state.change { $0.calls.append("are") }
            whenRemoved?()
        }
        func rowsWereRemoved(_ rows: [RemovedRow]) { state.change { $0.calls.append("were") } }
        func storeWasOpened(_ watch: CommitWatch, isSameFile: Bool) {}
        func takeAccesses(at now: Int64) -> [Access] { [] }
        func takeActivity() -> [Int64: Int64] { [:] }
        func overtakeLoads(_ loads: Overtaken) {}
    }
}
