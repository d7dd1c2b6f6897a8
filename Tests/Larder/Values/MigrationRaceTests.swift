import Foundation
import Larder
import LarderLocks
import LarderStore
import LarderTestSupport
import Testing

/// Migrations while others use the store.
struct MigrationRaceTests {
    private let place: TemporaryStore
    private let manager: CacheManager
    private let old: Cache<Int, String>

    init() throws {
        (place, manager) = try TemporaryStore.opened()
        old = try Self.open(manager, "1")
        try old.setValues((0..<20).map { ($0, "\($0)") })
        try old.setValue(Self.long, forKey: 20)
    }

    private static let long = String(repeating: "long", count: 100)

    private static func open(
        _ manager: CacheManager, _ version: CacheVersion, _ steps: [CacheMigration<Int, String>] = []
    ) throws -> Cache<Int, String> {
        try manager.cache(
            named: "a", version: version, maxAge: .hours(1), options: CacheOptions(inlineLimit: 100).steady,
            migrations: steps)
    }

    /// A migration by a mark behind each value that calls `meanwhile` once, before its first or its last value.
    private func migrate(
        atEnd: Bool = false, _ meanwhile: @escaping @Sendable () throws -> Void
    ) throws -> Cache<Int, String> {
        let isOver = Atomic(false)
        let last = atEnd ? 20 : 0
        return try Self.open(
            manager, "2",
            [
                .from("1", as: String.self) { (key: Int, value: String, _) throws -> String? in
                    if key == last, !isOver.exchange(true, ordering: .relaxed) { try meanwhile() }
                    return value + "!"
                }
            ])
    }

    private func expectClean(_ count: Int, tags: Int = 1) throws {
        try manager.maintain()
        let probe = StoreProbe(manager)
        #expect(try probe.entryCount() == count && probe.tagCount() == tags)
        #expect(try probe.fileProblems(isSwept: true) == [] && manager.verify().isHealthy)
    }

    @Test(arguments: [true, false], [true, false])
    func `what others change during a migration is carried over too`(isOwn: Bool, atEnd: Bool) throws {
        let other = isOwn ? old : try Self.open(place.manager(), "1")
        let new = try migrate(atEnd: atEnd) {
            try other.setValue("changed", forKey: 1)
            try other.setValue("added", forKey: 100)
            try other.setValue(Self.long + "er", forKey: 20)
            try other.setValue(Self.long + "est", forKey: 101)
            try other.removeValue(forKey: 2)
            try other.setValue("tagged", forKey: 3, tags: ["t"])
            try other.setPinned(true, forKey: 4)
            place.clock.advance(by: .seconds(5))
            try other.touch(5)
        }
        var expected = [Int: String](uniqueKeysWithValues: (0..<20).map { ($0, "\($0)!") })
        expected.merge([1: "changed!", 100: "added!", 20: Self.long + "er!", 101: Self.long + "est!", 3: "tagged!"]) {
            $1
        }
        expected[2] = nil
        #expect(try new.snapshot() == expected)
        #expect(try new.keys(tagged: "t") == [3] && new.metadata(forKey: 4)?.isPinned == true)
        #expect(try new.metadata(forKey: 5)?.writtenAt == place.clock.now)
        #expect(other[1] == nil)
        expectError(.superseded) { try other.setValue("late", forKey: 1) }
        try expectClean(expected.count)
    }

    @Test func `many changes are carried over in passes, before the switch`() throws {
        try old.setValues((1_000..<2_500).map { ($0, "\($0)") })
        let other = try Self.open(place.manager(), "1")
        let (rounds, calls) = (Counter(), Counter())
        let new = try Self.open(
            manager, "2",
            [
                .from("1", as: String.self) { (key: Int, value: String, _) throws -> String? in
                    calls.increment()
                    if key == 2_499 && rounds.value < 3 {
                        rounds.increment()
                        try other.setValues((1_000..<1_700).map { ($0, "\($0) in round \(rounds.value)") })
                        try other.setValue("2499 in round \(rounds.value)", forKey: 2_499)
                    }
                    return key == 2_000 ? nil : value + "!"
                }
            ])
        #expect(new[1_000] == "1000 in round 3!" && new[1_699] == "1699 in round 3!" && new[1_700] == "1700!")
        #expect(new[2_499] == "2499 in round 3!" && new[2_000] == nil)
        // What was dropped is not looked at again.
        #expect(calls.value == 1_521 + 3 * 701)
        #expect(try new.count == 1_520)
    }

    @Test(arguments: [true, false])
    func `what is removed after it was taken in is not there afterwards`(isCleared: Bool) throws {
        try old.setValues((100..<1_500).map { ($0, "\($0)") })
        let other = try Self.open(place.manager(), "1")
        let new = try Self.open(
            manager, "2",
            [
                .from("1", as: String.self) { (key: Int, value: String, _) throws -> String? in
                    if key == 700 { if isCleared { try other.removeAll() } else { try other.removeValue(forKey: 5) } }
                    return value + "!"
                }
            ])
        #expect(new[5] == nil && new[700] == (isCleared ? nil : "700!"))
        #expect(try isCleared || new.count == 1_420)
        try manager.maintain()
        #expect(try StoreProbe(manager).entryCount() == new.count)
    }

    @Test func `if the file is replaced in the midst, the migration begins again`() throws {
        try old.setValues((100..<1_000).map { ($0, "\($0)") })
        let isOver = Atomic(false)
        let new = try Self.open(
            manager, "2",
            [
                .from("1", as: String.self) { (key: Int, value: String, _) throws -> String? in
                    if key == 600, !isOver.exchange(true, ordering: .relaxed) {
                        // What a salvage keeps of a migration.
                        var shell = try Intruder(place.url)
                        try shell.execute(
                            """
                            DELETE FROM entry WHERE cache IN (SELECT id FROM cache WHERE state = 2);
                            DELETE FROM cache WHERE state = 2
                            """)
                    }
                    return value + "!"
                }
            ])
        #expect(new[5] == "5!" && new[600] == "600!")
        try manager.maintain()
        #expect(try new.count == 921 && StoreProbe(manager).entryCount() == 921)
        #expect(try Self.open(place.manager(), "2").count == 921)
    }

    @Test func `a suspension ends a migration, and the old version is whole`() throws {
        try old.setValues((100..<1_000).map { ($0, "\($0)") })
        let suspension = Mutex<SideThread<Void>?>(nil)
        expectError(.suspended) {
            try Self.open(
                manager, "2",
                [
                    .from("1", as: String.self) { (key: Int, value: String, _) throws -> String? in
                        if key == 600 {
                            suspension.withLock { $0 = SideThread { try manager.suspend() } }
                            while !manager.store.isSuspended { sched_yield() }
                        }
                        return value
                    }
                ])
        }
        try suspension.withLock { $0 }?.value()
        manager.resume()
        #expect(try old.count == 921 && Self.open(manager, "2", [.keeping("1")]).count == 921)
        try expectClean(921, tags: 0)
    }

    enum Closure: CaseIterable { case conversion, progress }

    @Test(arguments: Closure.allCases)
    func `a closure of a migration may suspend the manager, which ends the migration`(closure: Closure) throws {
        try old.setValues((100..<1_000).map { ($0, "\($0)") })
        let calls = Counter()
        // A thread of its own, so that a call without an end fails the test.
        let opening = SideThread { [manager] in
            @Sendable func suspend(_ kind: Closure) throws {
                if kind == closure, calls.increment() == 2 { try manager.suspend() }
            }
            let _: Cache<Int, String> = try manager.cache(
                named: "a", version: "2", maxAge: .unlimited,
                migrations: [
                    .from("1", as: String.self) { (_: Int, value: String, _) throws -> String? in
                        try suspend(.conversion)
                        return value
                    }
                ]
            ) { _ in
                do { try suspend(.progress) } catch { Issue.record(error) }
            }
        }
        let error = #expect(throws: CacheError.self) { try opening.value() }
        #expect(error?.code == .suspended && manager.store.isSuspended)
        // No lock is left that would keep another process from migrating.
        let other = try place.manager { $0.busyTimeout = .zero }
        #expect(try Self.open(other, "2", [.from("1", as: String.self) { $0 + "!" }]).count == 921)
        manager.resume()
        #expect(try Self.open(manager, "2")[100] == "100!")
    }

    @Test func `a copy in memory is not that of a later value of its key`() throws {
        let other = try place.manager()
        let second = try migrate {}
        #expect(second[1] == "1!")
        // There and back in another process.
        let first = try Self.open(other, "1", [.from("2", as: String.self) { $0 + "?" }])
        #expect(first[1] == "1!?")
        _ = try Self.open(other, "2", [.from("1", as: String.self) { $0 + "." }])
        #expect(second[1] == "1!?.")
    }

    @Test func `a shorter age of kept values holds at once`() throws {
        #expect(try old.count == 21)
        let new: Cache<Int, String> = try manager.cache(
            named: "a", version: "2", maxAge: .minutes(1), migrations: [.keeping("1")])
        #expect(try new.count == 21)
        place.clock.advance(by: .seconds(120))
        #expect(try new.isEmpty)
        #expect(try manager.maintain().expired == 21)
    }

    enum Meanwhile: CaseIterable { case cleared, removed, opened, reopened, migrated }

    @Test(arguments: Meanwhile.allCases)
    func `a cache that is cleared, removed or opened in the meantime is that afterwards`(what: Meanwhile) throws {
        let other = try place.manager { if what == .migrated { $0.busyTimeout = .zero } }
        let new = try migrate {
            switch what {
            case .cleared: try Self.open(other, "1").removeAll()
            case .removed: try other.removeCache(named: "a")
            case .opened: try Self.open(other, "2").setValue("own", forKey: 7)
            case .reopened: try Self.open(other, "0").setValue("own", forKey: 7)
            case .migrated: expectError(.busy) { try Self.open(other, "2", [.from("1", as: String.self) { $0 }]) }
            }
        }
        switch what {
        case .cleared, .removed, .reopened: #expect(try new.snapshot().isEmpty)
        case .opened: #expect(try new.snapshot() == [7: "own"])
        case .migrated: #expect(try new.count == 21)
        }
        try manager.maintain()
        #expect(try StoreProbe(manager).entryCount() == new.count)
    }

    @Test func `two who open the new version at once migrate once`() throws {
        let calls = Counter()
        let managers = [manager, try place.manager { $0.busyTimeout = .seconds(120) }]
        let found = Mutex<[Int]>([])
        DispatchQueue.concurrentPerform(iterations: 2) { index in
            do {
                let new = try Self.open(
                    managers[index], "2",
                    [
                        .from("1", as: String.self) { value in
                            calls.increment()
                            return value
                        }
                    ])
                let count = try new.count
                found.withLock { $0.append(count) }
            } catch {
                Issue.record(error)
            }
        }
        #expect(found.withLock { $0 } == [21, 21] && calls.value == 21)
    }

    @Test func `a stream of the old version ends`() async throws {
        var changes = old.changes().makeAsyncIterator()
        let new = try migrate {}
        #expect(await changes.next()?.isReset == true)
        #expect(await changes.next() == nil)
        #expect(try new.count == 21)
    }

    @Test(arguments: [true, false])
    func `what an interrupted migration has left is retired, by the next one or by the upkeep`(isNext: Bool) throws {
        var shell = try Intruder(place.url)
        try shell.execute(
            """
            INSERT INTO cache (id, name, version, codec, age_rule, age, state, opened_at, checksum)
                SELECT 77, name, '2', codec, age_rule, age, 2, opened_at, 0 FROM cache;
            INSERT INTO entry (cache, key, revision, written_at, checksum, payload)
                SELECT 77, key, revision, written_at, checksum, payload FROM entry
            """)
        #expect(try StoreProbe(manager).entryCount() == 42)
        if isNext { #expect(try migrate {}.count == 21) }
        try manager.maintain()
        #expect(try StoreProbe(manager).entryCount() == 21)
    }
}
