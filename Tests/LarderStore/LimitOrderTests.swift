import Foundation
import LarderSQLite
import LarderStore
import LarderTestSupport
import Testing

/// Limits remove the least recently used entry first, and accesses count whether or not they were stamped.
///
/// Each write and each access has a millisecond of its own.
struct LimitOrderTests {
    private let place: StorePlace
    private let clock = StoreClock()

    init() throws { place = try StorePlace() }

    static let grains: [Int64?] = [0, nil, 86_400_000]

    /// Opens a cache with a count limit and a memory, next to another cache with a number of entries.
    ///
    /// Next to many rows, the store looks for the oldest row of a cache by its keys, or else in the order of ids.
    private func open(
        limit: Int64?, grain: Int64? = nil, neighbours: Int64 = 0
    ) throws -> (store: Store, rows: CacheRows, memory: MemoryProbe) {
        let store = try place.open(clock)
        if neighbours > 0 {
            try store.open(.rows).run(.put((0..<neighbours).map { EntryWrite($0, "x") }))
        }
        let (rows, memory) = (try store.open(.a, accessGrain: grain ?? 3_600_000), MemoryProbe())
        rows.attach(memory)
        try rows.setLimits(Limits(count: limit))
        return (store, rows, memory)
    }

    private func put(_ keys: ClosedRange<Int64>, _ rows: CacheRows) throws {
        for key in keys {
            clock.advance(1)
            try rows.run(.put([EntryWrite(key, "x", at: clock.now)]))
        }
    }

    private func header(_ key: Int64, _ rows: CacheRows) throws -> EntryHeader {
        try #require(try rows.header(.integer(key)))
    }

    private func noteAccess(_ key: Int64, _ rows: CacheRows) throws {
        clock.advance(1)
        rows.noteAccess(to: try header(key, rows).summary, at: clock.now)
    }

    private func keys(_ rows: [StoredKey]) -> [Int64] {
        rows.map { key in
            if case .integer(let number) = key { number } else { -1 }
        }
    }

    /// Expects memory to have been told exactly of these rows, in this order.
    private func expectRemoved(
        _ expected: [ClosedRange<Int64>], _ memory: MemoryProbe, at place: SourceLocation = #_sourceLocation
    ) {
        let removed = keys(memory.removed.map(\.key))
        #expect(removed == expected.flatMap { Array($0) }, sourceLocation: place)
    }

    // MARK: Order

    @Test(arguments: grains, [0, 400] as [Int64])
    func `writes, replaces and accesses count alike, whatever the grain`(grain: Int64?, neighbours: Int64) throws {
        let (_, rows, memory) = try open(limit: 20, grain: grain, neighbours: neighbours)
        try put(1...20, rows)
        try noteAccess(5, rows)
        try put(1...1, rows)
        try noteAccess(2, rows)
        try noteAccess(5, rows)
        try put(7...7, rows)
        try noteAccess(1, rows)
        try put(21...40, rows)
        expectRemoved([3...4, 6...6, 8...20, 2...2, 5...5, 7...7, 1...1], memory)
    }

    @Test(arguments: grains)
    func `the accesses of memory count among those that are noted`(grain: Int64?) throws {
        let (store, rows, memory) = try open(limit: 20, grain: grain)
        func note(_ key: Int64) throws {
            let header = try header(key, rows)
            clock.advance(1)
            memory.note(Access(id: header.id, revision: header.revision, moment: clock.now, grain: grain ?? 1000))
            clock.advance(1)
        }
        try put(1...20, rows)
        try note(4)
        try noteAccess(1, rows)
        try note(2)
        // A pass takes them before the limit needs them.
        try store.maintain()
        try note(9)
        try noteAccess(3, rows)
        try put(21...40, rows)
        expectRemoved([5...8, 10...20, 4...4, 1...2, 9...9, 3...3], memory)
    }

    @Test(arguments: [0, 400] as [Int64])
    func `an entry that takes the id of a removed one is the last in the order`(neighbours: Int64) throws {
        let (_, rows, memory) = try open(limit: 20, neighbours: neighbours)
        try put(1...20, rows)
        for key in Int64(1)...19 { try noteAccess(key, rows) }
        try rows.run(.remove([.integer(20)]))
        try put(21...40, rows)
        expectRemoved([1...19], memory)
    }

    @Test func `the order begins again after a clear`() throws {
        let (store, rows, memory) = try open(limit: nil)
        try put(1...100, rows)
        try noteAccess(50, rows)
        try rows.run(.clear)
        #expect(try store.maintain().reclaimed == 100)
        try rows.setLimits(Limits(count: 20))
        try put(1...20, rows)
        try noteAccess(1, rows)
        try put(21...60, rows)
        expectRemoved([2...20, 1...1, 21...40], memory)
    }

    @Test(arguments: [0, nil] as [Int64?], [false, true])
    func `the order survives closing and reopening`(grain: Int64?, isAccessedAgain: Bool) throws {
        let (first, rows, _) = try open(limit: 20, grain: grain)
        try put(1...20, rows)
        clock.advance(3_600_000)
        try noteAccess(3, rows)
        try put(2...2, rows)
        try noteAccess(1, rows)
        try first.close()
        if isAccessedAgain {
            let (second, again, _) = try open(limit: 20, grain: grain)
            try noteAccess(8, again)
            try second.close()
        }
        let (_, last, memory) = try open(limit: 20, grain: grain)
        if isAccessedAgain { try noteAccess(3, last) }
        try put(21...40, last)
        expectRemoved(
            isAccessedAgain ? [4...7, 9...20, 2...2, 1...1, 8...8, 3...3] : [4...20, 3...3, 2...2, 1...1], memory)
    }

    /// Notes accesses to rows that are not there.
    private func noteOthers(_ ids: ClosedRange<Int64>, at moment: Int64, _ store: Store) {
        store.accesses.note(
            servedByMemory: ids.map { Access(id: -$0, revision: $0, moment: moment, grain: 3_600_000) })
    }

    @Test(arguments: [true, false])
    func `what was accessed last stays, however many accesses are noted before upkeep takes them`(
        hasUpkeep: Bool
    ) throws {
        let store = try place.open(clock) { $0.runsUpkeep = hasUpkeep }
        let (rows, sliding) = (try store.open(.a), try store.open(.named("sliding", .sinceAccess(60_000_000))))
        try put(1...10, rows)
        try put(1...1, sliding)
        clock.advance(5_000_000)
        // The oldest access of all.
        try noteAccess(1, sliding)
        let accessed = clock.now
        noteOthers(1...260_000, at: clock.now, store)
        try noteAccess(1, rows)
        noteOthers(260_001...300_000, at: clock.now - 1, store)
        #expect(try rows.trim(to: Limits(count: 5)) == 5)
        #expect(try keys(rows.keys(limit: 10).rows) == [1, 7, 8, 9, 10])
        #expect(try header(1, sliding).end == accessed + 60_000_000)
    }

    /// The keys of a cache with a limit, the least recently used first.
    private struct LeastRecentlyUsed {
        let limit: Int
        var keys: [Int64] = []

        mutating func remove(_ key: Int64) { keys.removeAll { $0 == key } }

        mutating func use(_ key: Int64) {
            remove(key)
            keys.append(key)
            if keys.count > limit { keys.removeFirst(max(keys.count - limit, limit / 20)) }
        }
    }

    struct Sizes: Sendable {
        let limit: Int
        /// The number of entries of another cache.
        let neighbours: Int64
    }

    static let sizes = [
        Sizes(limit: 20, neighbours: 0), Sizes(limit: 20, neighbours: 400), Sizes(limit: 200, neighbours: 0),
        Sizes(limit: 200, neighbours: 3000),
    ]

    @Test(arguments: sizes, grains)
    func `the keys are those of a list in the order of use, after each of many random operations`(
        sizes: Sizes, grain: Int64?
    ) throws {
        let (store, rows, _) = try open(limit: Int64(sizes.limit), grain: grain, neighbours: sizes.neighbours)
        var (model, random) = (LeastRecentlyUsed(limit: sizes.limit), Seeded(UInt64(sizes.limit)))
        let range = 0..<Int64(sizes.limit * 2)
        try put(0...Int64(sizes.limit - 1), rows)
        for key in 0..<Int64(sizes.limit) { model.use(key) }
        for step in 0..<300 {
            let key = Int64.random(in: range, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                try put(key...key, rows)
                model.use(key)
            case 5..<8:
                guard let found = try rows.header(.integer(key)) else { break }
                clock.advance(1)
                rows.noteAccess(to: found.summary, at: clock.now)
                model.use(key)
            case let operation:
                // The last one too, whose id is given to another entry then.
                let removed = operation == 8 ? key : model.keys.last ?? key
                try rows.run(.remove([.integer(removed)]))
                model.remove(removed)
            }
            if step % 100 == 50 { try store.maintain() }
            let found = try keys(rows.keys(limit: 1000).rows)
            try #require(found == model.keys.sorted(), "step \(step)")
        }
        if sizes.neighbours > 0 { #expect(try store.open(.rows).totals().count == sizes.neighbours) }
    }

    // MARK: Accesses

    @Test func `100,000 accesses within the grain write nothing`() throws {
        let (store, rows, _) = try open(limit: nil, grain: 60_000)
        try rows.run(.put((1...2000).map { EntryWrite($0, "x", at: 0) }))
        let all = try rows.headers(limit: 2000).rows
        var other = try place.otherConnection()
        func pass(_ other: inout Connection) throws -> [String?] {
            for count in 0..<100_000 { rows.noteAccess(to: all[count % 2000].summary, at: clock.now) }
            try store.maintain()
            return [
                try other.text("SELECT count(*) FROM used"),
                try other.text("SELECT sum(accessed_at) FROM used"), try other.text("PRAGMA data_version"),
            ]
        }
        let first = try pass(&other)
        #expect(first[0] == "2000" && first[1] == "2000000000")
        let second = try pass(&other)
        #expect(second == first)
        clock.advance(60_000)
        let third = try pass(&other)
        #expect(third[0] == "2000" && third[1] == "2120000000")
    }

    /// Memory that is asked while a reader notes an access.
    private final class Interrupted: TierDelegate {
        private let interrupt: @Sendable () -> Void
        private let calls = Counter()

        init(_ interrupt: @escaping @Sendable () -> Void) { self.interrupt = interrupt }

        func rowsAreRemoved() {}
        func rowsWereRemoved(_ rows: [RemovedRow]) {}
        func overtakeLoads(_ loads: Overtaken) {}
        func takeActivity() -> [Int64: Int64] { [:] }
        func storeWasOpened(_ watch: CommitWatch, isSameFile: Bool) {}
        func takeAccesses(at now: Int64) -> [Access] {
            if calls.increment() == 1 { interrupt() }
            return []
        }
    }

    @Test func `an access that is noted while a pass takes others is stamped by the next pass`() throws {
        let (store, rows, _) = try open(limit: nil, grain: 0)
        try put(1...1, rows)
        let (header, now) = (try header(1, rows), clock.now)
        let memory = Interrupted { rows.noteAccess(to: header.summary, at: now) }
        rows.attach(memory)
        for _ in 0..<2 { try store.maintain() }
        rows.detach(memory)
        var other = try place.otherConnection()
        #expect(try other.text("SELECT count(*) FROM used") == "1")
    }

    @Test func `the last of more accesses than are kept moves the end of a sliding entry`() throws {
        let sliding = CacheDeclaration(name: "a", version: "1", codec: "data", ageRule: .sinceAccess(160_000))
        let rows = try place.open(clock).open(sliding)
        try put(1...1, rows)
        let header = try header(1, rows)
        for count in 1...5000 { rows.noteAccess(to: header.summary, at: clock.now + Int64(count)) }
        #expect(try rows.header(.integer(1))?.end == 1_165_001)
    }

    @Test(arguments: [AttributeChange.pin(true), .extendedData(Data([1]))])
    func `a change of attributes keeps the accesses before it`(change: AttributeChange) throws {
        let sliding = CacheDeclaration(name: "a", version: "1", codec: "data", ageRule: .sinceAccess(160_000))
        let rows = try place.open(clock).open(sliding)
        try put(1...1, rows)
        clock.advance(100_000)
        try noteAccess(1, rows)
        try rows.run(.change(.integer(1), change))
        #expect(try rows.header(.integer(1))?.end == 1_260_002)
    }
}

/// A memory in front of a cache that keeps what the store reports, and has the accesses that a test gives it.
final class MemoryProbe: TierDelegate {
    private let rows = Locked<[RemovedRow]>([])
    private let accesses = Locked<[Access]>([])

    /// The rows that the store has removed, in order.
    var removed: [RemovedRow] { rows.value }

    func note(_ access: Access) { accesses.change { $0.append(access) } }

    func rowsAreRemoved() {}
    func rowsWereRemoved(_ removed: [RemovedRow]) { rows.change { $0 += removed } }

    func storeWasOpened(_ watch: CommitWatch, isSameFile: Bool) {}
    func takeAccesses(at now: Int64) -> [Access] {
        accesses.change { accesses -> [Access] in
            defer { accesses = [] }
            return accesses
        }
    }

    func overtakeLoads(_ loads: Overtaken) {}
    func takeActivity() -> [Int64: Int64] { [:] }
}
