import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Testing

/// What memory had used last is there again after an opening.
struct WarmStartTests {
    private let store: TemporaryStore

    init() throws { store = try TemporaryStore(of: #fileID) }

    private func cache(
        _ manager: CacheManager, _ warms: WarmStart? = .entries(3), memory: MemoryLimits? = nil,
        codec: ValueCodec<String> = .standard
    ) async throws -> Cache<Int, String> {
        var options = CacheOptions(memory: memory, warms: warms).steady
        options.warms = warms
        return try await manager.cache(
            named: "texts", version: "1", maxAge: .hours(1), options: options, codec: codec)
    }

    /// Fills a store, of whose entries 2, 9 and 4 are used last, in this order.
    private func fill(_ warms: WarmStart? = .entries(3)) async throws {
        let manager = try store.manager()
        let cache = try await cache(manager, warms)
        await cache.warmed()
        for key in 0..<20 { cache[key] = "\(key)" }
        for key in [2, 9, 4] { #expect(cache[key] == "\(key)") }
        try await manager.close()
    }

    /// Opens the cache again, and returns it once it is warm.
    private func warmed(_ warms: WarmStart? = .entries(3), memory: MemoryLimits? = nil) async throws -> Cache<
        Int, String
    > {
        let cache = try await cache(store.manager(), warms, memory: memory)
        await cache.warmed()
        return cache
    }

    @Test func `the entries that were used last are in memory, in their order, and count as no reads`() async throws {
        try await fill()
        let cache = try await warmed()
        #expect(cache.memory.keys == [2, 9, 4] && cache.memory[9] == "9" && cache.memory[3] == nil)
        cache.resetStatistics()
        #expect(cache[4] == "4" && cache.statistics.memoryHits == 1 && cache.statistics.diskHits == 0)
        // The times of accesses are those of before.
        let metadata = try await cache.metadata(forKey: 2)
        #expect(metadata?.accessedAt == metadata?.writtenAt)
        #expect(await cache.observed(9).value == "9")
    }

    @Test func `a number of bytes is one of memory, and no option is no warm start`() async throws {
        try await fill(.bytes(1 << 20))
        let all = try await warmed(.bytes(1 << 20))
        #expect(all.memory.count == 20)
        let one = all.memory.totalBytes / 20
        for key in [7, 8] { #expect(all[key] == "\(key)") }
        try await all.manager.close()
        // The latest opening says how many are noted.
        let two = try await warmed(.bytes(2 * one + one / 2))
        #expect(two.memory.count == 20)
        try await two.manager.close()
        let cold = try await warmed(nil)
        #expect(cold.memory.count == 0)
        try await cold.manager.close()
        #expect(try await warmed().memory.keys == [7, 8])
    }

    @Test func `nothing is written while nothing changes, and a suspension notes what does`() async throws {
        try await fill()
        for _ in 0..<2 {
            let cache = try await warmed()
            let probe = StoreProbe(cache.manager)
            let count = try probe.commitCount()
            try await cache.manager.flush()
            try await cache.manager.maintain()
            #expect(try probe.commitCount() == count && cache.memory.keys == [2, 9, 4])
            try await cache.manager.close()
        }
        let cache = try await warmed()
        _ = cache[15]
        try await cache.manager.suspend()
        let other = try await self.cache(store.manager())
        await other.warmed()
        #expect(other.memory.keys == [9, 4, 15])
        cache.manager.resume()
        // An empty memory says nothing of the next start.
        other.memory.removeAll()
        try await other.manager.close()
        #expect(try await warmed().memory.keys == [9, 4, 15])
    }

    @Test(arguments: ["", "\u{1}1234567", "\u{2}12345678", "\u{1}", "x"])
    func `a note that is damaged or of another format is ignored`(note: String) async throws {
        try await fill()
        let manager = try store.manager()
        try StoreProbe(manager).setNote(-1, note, ofCache: "texts")
        let cache = try await cache(manager)
        await cache.warmed()
        #expect(cache.memory.count == 0 && cache[4] == "4")
    }

    @Test func `what has expired, was removed or has no room is left out`() async throws {
        try await fill()
        let first = try store.manager()
        try await cache(first, nil).remove(9)
        try await first.close()
        #expect(try await warmed().memory.keys == [2, 4])
        #expect(try await warmed(memory: MemoryLimits(countLimit: 1)).memory.keys == [4])
        #expect(try await warmed(memory: .disabled).memory.keys == [])
        store.clock.advance(by: .seconds(3601))
        #expect(try await warmed().memory.keys == [])
    }

    enum Change: CaseIterable { case set, remove, clear, otherStore, suspend, otherVersion }

    @Test(arguments: Change.allCases)
    func `a change between the read and memory wins`(change: Change) async throws {
        try await fill()
        let (begun, gate) = (LoadGate(), LoadGate())
        defer { gate.open() }
        // The codec of the standard, whose decoder waits for the change.
        let standard = ValueCodec<String>.standard
        let codec = ValueCodec<String>(identifier: standard.identifier) {
            try CBOREncoder().encode($0)
        } decode: { data in
            begun.open()
            try gate.wait()
            return try CBORDecoder().decode(String.self, from: data)
        }
        let manager = try store.manager()
        let cache = try await cache(manager, codec: codec)
        try await begun.waitInTask()
        switch change {
        case .set: try await cache.setValue("new", forKey: 4)
        case .remove: try await cache.remove(4)
        case .clear: try await cache.removeAll()
        case .otherStore: try await self.cache(store.manager(), nil).setValue("new", forKey: 4)
        case .suspend: try await manager.suspend()
        case .otherVersion:
            let _: Cache<Int, String> = try await manager.cache(named: "texts", version: "2", maxAge: .hours(1))
        }
        gate.open()
        await cache.warmed()
        if change == .suspend { manager.resume() }
        #expect(cache.memory[4] == (change == .set ? "new" : nil))
        let expected: String? =
            switch change {
            case .set, .otherStore: "new"
            case .suspend: "4"
            case .remove, .clear, .otherVersion: nil
            }
        #expect(cache[4] == expected)
    }

    @Test func `a migration keeps it where the keys stay`() async throws {
        try await fill()
        let manager = try store.manager()
        let cache: Cache<Int, String> = try await manager.cache(
            named: "texts", version: "2", maxAge: .hours(1), options: CacheOptions(warms: .entries(3)),
            migrations: [.from("1", as: String.self) { $0 == "9" ? nil : "new \($0)" }])
        await cache.warmed()
        #expect(cache.memory.keys == [2, 4] && cache.memory[4] == "new 4")
        try await manager.close()
        let next = try store.manager()
        let kept: Cache<Int, String> = try await next.cache(
            named: "texts", version: "3", maxAge: .hours(1), options: CacheOptions(warms: .entries(3)),
            migrations: [.keeping("2")])
        await kept.warmed()
        #expect(kept.memory.keys == [2, 4])
        // A purge leaves nothing to warm.
        let purged: Cache<Int, String> = try await next.cache(
            named: "texts", version: "4", maxAge: .hours(1), options: CacheOptions(warms: .entries(3)))
        await purged.warmed()
        #expect(purged.memory.count == 0)
    }

    @Test func `few reads of a short run leave what was used before them`() async throws {
        try await fill()
        let first = try await warmed()
        first.memory.removeAll()
        _ = first[17]
        try await first.manager.close()
        #expect(try await warmed().memory.keys == [9, 4, 17])
        // Handles that are released before the manager is closed note it too.
        func use(_ manager: CacheManager) async throws {
            let cache = try await cache(manager)
            await cache.warmed()
            _ = cache[18]
        }
        let manager = try store.manager()
        try await use(manager)
        try await manager.close()
        #expect(try await warmed().memory.keys == [4, 17, 18])
    }

    @Test func `a negative number is refused`() async throws {
        let manager = try store.manager()
        for warms in [WarmStart.entries(-1), .bytes(-1)] {
            let error = await #expect(throws: CacheError.self) { try await cache(manager, warms) }
            #expect(error?.code == .invalidConfiguration)
        }
        // A cache that is opened without the option is warm at once.
        await (try cache(manager, nil)).warmed()
    }
}
