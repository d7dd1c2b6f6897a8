import Foundation
import Larder
import LarderTestSupport
import Testing

/// Handles whose sub-cache is another's now: they show nothing and write nothing.
struct SupersededTests {
    private let place: StorePlace
    private let manager: CacheManager
    private let old: Cache<Int, String>

    init() throws {
        (place, manager) = try StorePlace.opened()
        old = try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions(inlineLimit: 3).steady)
        try old.setValue("in a file", forKey: 1, extendedData: Data([7]))
        try old.setValue("row", forKey: 2, extendedData: Data([7]))
        #expect(old[1] != nil && old[2] != nil)
    }

    enum End: CaseIterable { case sameManager, otherManager, removal, otherProcess }

    /// Puts another sub-cache in the place of the handle's; gives the new one, with an entry of its own, and who has it.
    private func supersede(_ end: End) throws -> (Cache<Int, String>, CacheManager) {
        switch end {
        case .removal: try manager.removeCache(named: "a")
        case .otherProcess:
            var intruder = try Intruder(place.url)
            try intruder.change(
                """
                UPDATE cache SET is_retired = 1;
                INSERT INTO cache (name, version, codec, age_rule, age, opened_at)
                    SELECT name, '2', codec, age_rule, age, opened_at FROM cache
                """)
        case .sameManager, .otherManager: break
        }
        let home = try end == .otherManager ? place.manager() : manager
        let newer: Cache<Int, String> = try home.cache(
            named: "a", version: "2", maxAge: .hours(1), options: CacheOptions(inlineLimit: 3).steady)
        try newer.setValue("newer, in a file", forKey: 1, extendedData: Data([8]))
        return (newer, home)
    }

    // case 128, 133
    @Test(arguments: End.allCases)
    func `a superseded handle shows nothing, whatever is read`(end: End) async throws {
        let (newer, home) = try supersede(end)
        defer { withExtendedLifetime(home) {} }
        try readNothing()
        for key in 1...2 {
            #expect(try await old.value(forKey: key) == nil)
            #expect(try await old.entry(forKey: key, allowingExpired: true) == nil)
            #expect(try await old.metadata(forKey: key) == nil)
            #expect(try await old.extendedData(forKey: key) == nil)
            #expect(try await !old.contains(key))
            #expect(try await old.disk.value(forKey: key) == nil)
        }
        #expect(try await old.values(forKeys: [1, 2]).isEmpty)
        #expect(try await old.snapshot().isEmpty)
        #expect(try await old.async.reduce(0) { count, _ in count + 1 } == 0)
        #expect(newer[1] == "newer, in a file")
        try expectInvariants(newer)
    }

    private func readNothing() throws {
        for key in 1...2 {
            #expect(old[key] == nil && old[key, default: "none"] == "none")
            #expect(try old.value(forKey: key) == nil)
            #expect(try old.entry(forKey: key) == nil)
            #expect(try old.entry(forKey: key, allowingExpired: true) == nil)
            #expect(try old.metadata(forKey: key) == nil)
            #expect(try old.extendedData(forKey: key) == nil)
            #expect(try !old.contains(key))
            #expect(try old.fileURL(forKey: key) == nil)
            #expect(old.memory[key] == nil && !old.memory.contains(key))
            #expect(try old.disk.value(forKey: key) == nil && !old.disk.contains(key))
        }
        #expect(try old.values(forKeys: [1, 2]).isEmpty)
        #expect(try old.snapshot().isEmpty)
        #expect(try old.count == 0 && old.isEmpty && old.sizeOnDisk == 0)
        #expect(try old.disk.count == 0 && old.disk.size == 0)
        #expect(Array(old.keys) == [] && Array(old.values) == [])
        #expect(old.map(\.key) == [] && old.memory.map(\.key) == [] && old.disk.map(\.key) == [])
        for order in [EntryOrder.key, .written, .accessed, .size] {
            #expect(old.entries(orderedBy: order).map(\.key) == [])
        }
        #expect(old.statistics.failures == 0)
    }

    /// Every call that writes and throws.
    private static let writes: [@Sendable (Cache<Int, String>) throws -> Void] = [
        { try $0.setValue("x", forKey: 1) }, { try $0.setValue("too long for a row", forKey: 1) },
        { try $0.setValue(nil, forKey: 1) }, { try $0.setValues([1: "x"]) },
        { try $0.setValues([(1, "x"), (2, "too long for a row")]) }, { try $0.setExtendedData(Data([9]), forKey: 1) },
        { try $0.setExtendedData(nil, forKey: 1) }, { try $0.remove(1) }, { try $0.removeValue(forKey: 1) },
        { try $0.removeValues(forKeys: [1, 2]) }, { try $0.removeAll() }, { try $0.clear() },
        { try $0.removeAll(where: { _ in true }) }, { try $0.removeAll(whereMetadata: { _, _ in true }) },
        { try $0.update(1) { $0 = "x" } }, { try $0.update(1) { $0 = nil } }, { try $0.update(1) { _ in } },
        { try $0.removeExpired() }, { try $0.trim(toCount: 0) }, { try $0.trim(toSize: 0) },
        { try $0.disk.trim(toCount: 0) }, { try $0.disk.trim(toSize: 0) }, { try $0.disk.removeAll() },
        { cache in try cache.manager.transaction { try $0.setValue("x", forKey: 1, in: cache) } },
        { cache in try cache.manager.transaction { try $0.removeValue(forKey: 1, in: cache) } },
        { _ = try $0.value(forKey: 1) { _ in "x" } }, { _ = try $0.values(forKeys: [1]) { _ in [1: "x"] } },
    ]

    /// The same of those that a task calls.
    private static let writesInTasks: [@Sendable (Cache<Int, String>) async throws -> Void] = [
        { try await $0.setValue("x", forKey: 1) }, { try await $0.setValue("too long for a row", forKey: 1) },
        { try await $0.setValue(nil, forKey: 1) }, { try await $0.setValues([1: "x"]) },
        { try await $0.setExtendedData(Data([9]), forKey: 1) }, { try await $0.remove(1) },
        { try await $0.removeValue(forKey: 1) }, { try await $0.removeValues(forKeys: [1, 2]) },
        { try await $0.removeAll() }, { try await $0.clear() },
        { try await $0.removeExpired() }, { try await $0.trim(toCount: 0) }, { try await $0.trim(toSize: 0) },
        { _ = try await $0.value(forKey: 1) { _ async in "x" } },
        { _ = try await $0.values(forKeys: [1]) { _ async in [1: "x"] } },
        { _ = try await $0.entry(forKey: 1) { _, _ in .value("x") } },
    ]

    // case 128, 133
    @Test(arguments: End.allCases, writes.indices)
    func `a superseded handle writes nothing, and says so`(end: End, index: Int) throws {
        let (newer, home) = try supersede(end)
        expectError(.superseded) { try Self.writes[index](old) }
        #expect(try newer.snapshot() == [1: "newer, in a file"])
        #expect(try newer.extendedData(forKey: 1) == Data([8]))
        try readNothing()
        try home.maintain()
        #expect(try StoreProbe(home).fileProblems().isEmpty)
        try expectInvariants(newer)
    }

    @Test(arguments: End.allCases, writesInTasks.indices)
    func `a superseded handle writes nothing in a task either`(end: End, index: Int) async throws {
        let (newer, home) = try supersede(end)
        let error = await #expect(throws: CacheError.self) { try await Self.writesInTasks[index](old) }
        #expect(error?.code == .superseded)
        #expect(try await newer.snapshot() == [1: "newer, in a file"])
        #expect(try await newer.extendedData(forKey: 1) == Data([8]))
        try readNothing()
        try await home.maintain()
        #expect(try StoreProbe(home).fileProblems().isEmpty)
        try expectInvariants(newer)
    }
}
