import Foundation
import Larder
import LarderTestSupport
import Testing

/// Handles on a cache that was opened under another version or removed: they show nothing and write nothing.
struct SupersededTests {
    private static let options = CacheOptions(inlineLimit: 5).steady

    private let place: TemporaryStore
    private let manager: CacheManager
    private let old: Cache<Int, String>

    init() throws {
        (place, manager) = try TemporaryStore.opened()
        old = try manager.cache(named: "a", version: "1", maxAge: .hours(1), options: Self.options)
        try old.setValue("in a file", forKey: 1, extendedData: Data([7]), tags: ["t"])
        try old.setValue("row", forKey: 2, extendedData: Data([7]), tags: ["t"])
        #expect(old[1] != nil && old[2] != nil)
    }

    enum Cause: CaseIterable { case sameManager, otherManager, removal, otherProcess }

    /// Supersedes the old handle, and returns a new one with an entry of its own.
    private func supersede(_ cause: Cause) throws -> Cache<Int, String> {
        switch cause {
        case .removal: try manager.removeCache(named: "a")
        case .otherProcess:
            var shell = try Intruder(place.url)
            try shell.execute(
                """
                UPDATE cache SET state = 1, checksum = 0;
                INSERT INTO cache (name, version, codec, age_rule, age, state, opened_at)
                    SELECT name, '2', codec, age_rule, age, 0, opened_at FROM cache
                """)
        case .sameManager, .otherManager: break
        }
        let home = try [.otherManager, .otherProcess].contains(cause) ? place.manager() : manager
        let newer: Cache<Int, String> = try home.cache(
            named: "a", version: "2", maxAge: .hours(1), options: Self.options)
        try newer.setValue("newer, in a file", forKey: 1, extendedData: Data([8]), tags: ["t"])
        return newer
    }

    private func expectUntouched(_ newer: Cache<Int, String>, _ comment: Comment) throws {
        #expect(try newer.snapshot() == [1: "newer, in a file"], comment)
        #expect(try newer.extendedData(forKey: 1) == Data([8]), comment)
    }

    /// Expects that nothing was left behind by calls that threw.
    private func expectSound(_ newer: Cache<Int, String>) throws {
        try expectNothing()
        try newer.manager.maintain()
        #expect(try StoreProbe(newer.manager).fileProblems() == [])
        try expectInvariants(newer)
    }

    private func expectNothing() throws {
        for key in 1...2 {
            #expect(old[key] == nil && old[key, default: "none"] == "none")
            #expect(try old.value(forKey: key) == nil)
            #expect(try old.entry(forKey: key) == nil && old.entry(forKey: key, allowingExpired: true) == nil)
            #expect(try old.metadata(forKey: key) == nil && old.extendedData(forKey: key) == nil)
            #expect(try !old.contains(key) && old.fileURL(forKey: key) == nil)
            #expect(old.memory[key] == nil && !old.memory.contains(key))
            #expect(try old.disk.value(forKey: key) == nil && !old.disk.contains(key))
        }
        #expect(try old.values(forKeys: [1, 2]).isEmpty && old.snapshot().isEmpty && old.entries(tagged: "t").isEmpty)
        #expect(try old.count == 0 && old.isEmpty && old.sizeOnDisk == 0)
        #expect(try old.disk.count == 0 && old.disk.size == 0)
        #expect(Array(old.keys) == [] && Array(old.values) == [])
        #expect(old.map(\.key) == [] && old.memory.map(\.key) == [] && old.disk.map(\.key) == [])
        for order in [EntryOrder.key, .written, .accessed, .size] {
            #expect(old.entries(orderedBy: order).map(\.key) == [])
        }
        #expect(old.statistics.failures == 0)
    }

    @Test(arguments: Cause.allCases)
    func `a superseded handle shows nothing, whatever call reads`(cause: Cause) async throws {
        let newer = try supersede(cause)
        try expectNothing()
        for key in 1...2 {
            #expect(try await old.value(forKey: key) == nil)
            #expect(try await old.entry(forKey: key, allowingExpired: true) == nil)
            #expect(try await old.metadata(forKey: key) == nil)
            #expect(try await old.extendedData(forKey: key) == nil)
            #expect(try await !old.contains(key))
            #expect(try await old.fileURL(forKey: key) == nil)
            #expect(try await old.disk.value(forKey: key) == nil)
        }
        #expect(try await old.values(forKeys: [1, 2]).isEmpty)
        #expect(try await old.entries(tagged: "t").isEmpty)
        #expect(try await old.snapshot().isEmpty)
        #expect(try await old.async.reduce(0) { count, _ in count + 1 } == 0)
        #expect(newer[1] == "newer, in a file")
        try expectInvariants(newer)
    }

    /// Every call that writes and throws.
    private static let writes: [@Sendable (Cache<Int, String>) throws -> Void] = [
        { try $0.setValue("x", forKey: 1) }, { try $0.setValue("too long for a row", forKey: 1) },
        { try $0.setValue(nil, forKey: 1) }, { try $0.setValues([1: "x"]) },
        { try $0.setValues([(1, "x"), (2, "too long for a row")]) }, { try $0.setExtendedData(Data([9]), forKey: 1) },
        { try $0.setExtendedData(nil, forKey: 1) }, { try $0.touch(1) }, { try $0.setPinned(true, forKey: 1) },
        { try $0.remove(1) }, { try $0.removeValue(forKey: 1) }, { try $0.removeValues(forKeys: [1, 2]) },
        { try $0.removeAll() }, { try $0.removeAll(tagged: "t") }, { try $0.clear() },
        { try $0.removeAll(where: { _ in true }) }, { try $0.removeAll(whereMetadata: { _, _ in true }) },
        { try $0.update(1) { $0 = "x" } }, { try $0.update(1) { $0 = nil } }, { try $0.update(1) { _ in } },
        { try $0.removeExpired() }, { try $0.trim(toCount: 0) }, { try $0.trim(toSize: 0) },
        { try $0.disk.trim(toCount: 0) }, { try $0.disk.trim(toSize: 0) }, { try $0.disk.removeAll() },
        { try $0.disk.setLimits(DiskLimits(countLimit: 0)) },
        { cache in try cache.manager.transaction { try $0.setValue("x", forKey: 1, in: cache) } },
        { cache in try cache.manager.transaction { try $0.removeValue(forKey: 1, in: cache) } },
        { _ = try $0.value(forKey: 1) { _ in "x" } }, { _ = try $0.values(forKeys: [1]) { _ in [1: "x"] } },
    ]

    @Test(arguments: Cause.allCases)
    func `a superseded handle writes nothing, and each call throws`(cause: Cause) throws {
        let newer = try supersede(cause)
        for (index, write) in Self.writes.enumerated() {
            let error = #expect(throws: CacheError.self, "write \(index)") { try write(old) }
            #expect(error?.code == .superseded, "write \(index)")
            try expectUntouched(newer, "write \(index)")
        }
        try expectSound(newer)
    }

    /// Every call of a task that writes and throws.
    private static let writesOfTasks: [@Sendable (Cache<Int, String>) async throws -> Void] = [
        { try await $0.setValue("x", forKey: 1) }, { try await $0.setValue("too long for a row", forKey: 1) },
        { try await $0.setValue(nil, forKey: 1) }, { try await $0.setValues([1: "x"]) },
        { try await $0.setExtendedData(Data([9]), forKey: 1) }, { try await $0.touch(1) },
        { try await $0.setPinned(true, forKey: 1) }, { try await $0.remove(1) },
        { try await $0.removeValue(forKey: 1) }, { try await $0.removeValues(forKeys: [1, 2]) },
        { try await $0.removeAll() }, { try await $0.removeAll(tagged: "t") }, { try await $0.clear() },
        { try await $0.update(1) { $0 = "x" } }, { try await $0.removeExpired() },
        { try await $0.trim(toCount: 0) }, { try await $0.trim(toSize: 0) },
        { cache in try await cache.manager.transaction { try $0.setValue("x", forKey: 1, in: cache) } },
        { _ = try await $0.value(forKey: 1) { _ async in "x" } },
        { _ = try await $0.values(forKeys: [1]) { _ async in [1: "x"] } },
        { _ = try await $0.entry(forKey: 1) { _, _ async in .value("x") } },
    ]

    @Test(arguments: Cause.allCases)
    func `a superseded handle writes nothing in a task either`(cause: Cause) async throws {
        let newer = try supersede(cause)
        for (index, write) in Self.writesOfTasks.enumerated() {
            let error = await #expect(throws: CacheError.self, "write \(index)") { try await write(old) }
            #expect(error?.code == .superseded, "write \(index)")
            try expectUntouched(newer, "write \(index)")
        }
        try expectSound(newer)
    }
}
