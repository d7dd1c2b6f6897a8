import Foundation
import Larder
import LarderTestSupport
import Testing

/// Loads of all forms together with sets, removals, clears, expirations and evictions, on eight threads.
struct LoadRaceTests {
    @Test(.enabled(if: LongTests.areEnabled, "a long test"), arguments: StoreKind.allCases)
    func `values are for their keys, and never older than the writes of their readers`(kind: StoreKind) async throws {
        let (seed, place) = (Seeded().seed, try TemporaryStore(of: #fileID))
        let race = try LoadRace(Self.manager(kind, place), place.clock)
        let ends: [RaceEnd]
        do {
            ends = try await onThread { () throws -> [RaceEnd] in
                let threads = (0..<LoadRace.threadCount).map { number in
                    SideThread { LoadRacer.run(number, in: race, seed: seed &+ UInt64(number)) }
                }
                return try threads.map { try $0.value() }
            }
            // Refreshes in the background may still run.
            try await Waiting.until { !race.cache.isGenerating }
        } catch {
            Issue.record("\(error), seed \(seed)")
            return
        }
        #expect(race.problems.all.prefix(5) == [], "seed \(seed)")
        #expect(race.cache.waitingCallers == 0 && race.cache.statistics.failures == 0, "seed \(seed)")
        try expectSameTiers(of: race, ends, seed)
        if kind == .file { try expectSame(race, in: Self.manager(kind, place), seed) }
        try await race.cache.manager.maintain()
        try expectInvariants(race.cache)
        #expect(try await race.cache.manager.verify().isHealthy, "seed \(seed)")
    }

    private static func manager(_ kind: StoreKind, _ place: TemporaryStore) throws -> CacheManager {
        var configuration = place.clock.configuration
        configuration.busyTimeout = .seconds(120)
        return switch kind {
        case .file: try CacheManager(url: place.url, configuration: configuration)
        case .memory: try CacheManager.inMemory(configuration: configuration)
        }
    }

    /// Expects that both tiers agree, and that each value is one that was created for its key, after the last write.
    private func expectSameTiers(of race: LoadRace, _ ends: [RaceEnd], _ seed: UInt64) throws {
        let cache = race.cache
        for key in LoadRace.keys {
            let copy = cache.memory[key]
            let value = try cache.disk.value(forKey: key)
            #expect(copy == nil || copy == value, "key \(key), seed \(seed)")
            #expect(cache[key] == value, "key \(key), seed \(seed)")
            guard let value else { continue }
            #expect(value.key == key && race.isKnown(value), "\(value), seed \(seed)")
            for end in ends { #expect(value.number >= end.leastNumbers[key] ?? 0, "\(value), seed \(seed)") }
        }
        for end in ends {
            for (key, value) in end.lastValues {
                #expect(value.key == key && race.isKnown(value), "\(value), seed \(seed)")
            }
        }
    }

    /// Expects that another manager of the same store has the same values.
    private func expectSame(_ race: LoadRace, in manager: CacheManager, _ seed: UInt64) throws {
        let other = try LoadRace(manager, race.time).cache
        for key in LoadRace.keys {
            let (theirs, ours) = (try other.value(forKey: key), try race.cache.value(forKey: key))
            #expect(theirs == ours, "key \(key), seed \(seed)")
        }
    }
}

/// A value that says by which thread and write it was created.
private struct RaceValue: Hashable, Sendable, CustomStringConvertible {
    let key: Int
    /// Greater than the numbers of all values that were created before.
    let number: Int
    let thread: Int
    let isLoaded: Bool

    var description: String { "value \(number) for key \(key), \(isLoaded ? "loaded" : "set") by thread \(thread)" }

    static let codec = ValueCodec<RaceValue>(
        identifier: "race",
        encode: { Data("\($0.key) \($0.number) \($0.thread) \($0.isLoaded ? 1 : 0)".utf8) },
        decode: { data in
            let words = String(decoding: data, as: UTF8.self).split(separator: " ").compactMap { Int($0) }
            guard words.count == 4 else { throw Offline() }
            return RaceValue(key: words[0], number: words[1], thread: words[2], isLoaded: words[3] == 1)
        })
}

/// What a thread of a race knows in the end.
private struct RaceEnd: Sendable {
    /// The least numbers that values of the thread's own keys may have: those of the last set, removal or clear.
    var leastNumbers: [Int: Int] = [:]
    /// The last values that the thread got.
    var lastValues: [Int: RaceValue] = [:]
}

/// The cache of a race, and the values that were created for it.
private final class LoadRace: Sendable {
    static let threadCount = 8
    static let sharedKeys = 0..<6
    /// Keys that are set only to evict others.
    static let fillingKeys = 100..<110
    static let keys = Array(sharedKeys) + (0..<threadCount).flatMap { LoadRace.ownKeys(of: $0) } + Array(fillingKeys)

    /// The keys that one thread alone sets and removes.
    static func ownKeys(of thread: Int) -> [Int] { [10 + 2 * thread, 11 + 2 * thread] }

    /// The number of steps of a thread: 100,000 for all threads and both kinds of stores.
    static var stepCount: Int { (ChildProcess.isSanitized ? 10_000 : 50_000) / threadCount }

    let cache: Cache<Int, RaceValue>
    let time: ManualClock
    let problems = Told<String>()
    private let numbers = Counter()
    private let known = Locked<Set<RaceValue>>([])

    init(_ manager: CacheManager, _ time: ManualClock) throws {
        self.time = time
        let (memory, disk) = (MemoryLimits(countLimit: 20), DiskLimits(countLimit: Self.keys.count - 8))
        cache = try manager.cache(
            named: "race", version: "1", maxAge: .seconds(20), options: CacheOptions(memory: memory, disk: disk),
            codec: RaceValue.codec)
    }

    func newNumber() -> Int { numbers.increment() }

    func newValue(_ key: Int, by thread: Int, isLoaded: Bool = true) -> RaceValue {
        let value = RaceValue(key: key, number: newNumber(), thread: thread, isLoaded: isLoaded)
        known.change { _ = $0.insert(value) }
        return value
    }

    private func newValues(_ keys: [Int], by thread: Int) -> [Int: RaceValue] {
        Dictionary(uniqueKeysWithValues: keys.map { ($0, newValue($0, by: thread)) })
    }

    func isKnown(_ value: RaceValue) -> Bool { known.value.contains(value) }

    // MARK: Loads

    enum Form: CaseIterable { case value, nested, many, entry, cancelled, several, generator }

    /// Loads keys on this thread.
    func load(_ form: Form, _ keys: [Int], by thread: Int) throws -> [Int: RaceValue] {
        let key = keys[0]
        switch form {
        case .many: return try cache.values(forKeys: keys) { newValues($0, by: thread) }
        case .entry:
            let entry = try cache.entry(forKey: key) { key, old in
                old == nil ? .value(newValue(key, by: thread)) : .notModified
            }
            return [key: entry.value]
        case .nested:
            let value = try cache.value(forKey: key) { key in
                if let next = inner(key) { _ = try cache.value(forKey: next) { newValue($0, by: thread) } }
                return newValue(key, by: thread)
            }
            return [key: value]
        default:
            let value = try cache.value(forKey: key) { newValue($0, by: thread) }
            return [key: value]
        }
    }

    /// Loads keys in tasks.
    func loadInTasks(_ form: Form, _ keys: [Int], by thread: Int) async throws -> [Int: RaceValue] {
        let key = keys[0]
        switch form {
        case .value: return [key: try await loadValue(key, by: thread)]
        case .nested:
            let value = try await cache.value(forKey: key) { [self] key in
                if let next = inner(key) { _ = try await loadValue(next, by: thread) }
                return newValue(key, by: thread)
            }
            return [key: value]
        case .many:
            return try await cache.values(forKeys: keys) { [self] keys in
                await Task.yield()
                return newValues(keys, by: thread)
            }
        case .entry:
            let entry = try await cache.entry(forKey: key) { [self] key, old in
                await Task.yield()
                return old == nil ? .value(newValue(key, by: thread)) : .notModified
            }
            return [key: entry.value]
        case .cancelled:
            let task = Task { try await loadValue(key, by: thread) }
            await Task.yield()
            task.cancel()
            do { return [key: try await task.value] } catch is CancellationError { return [:] }
        case .several:
            return try await withThrowingTaskGroup(of: (Int, RaceValue).self) { group in
                for key in keys + keys { group.addTask { (key, try await self.loadValue(key, by: thread)) } }
                var found: [Int: RaceValue] = [:]
                for try await (key, value) in group { found[key] = value }
                return found
            }
        case .generator:
            let policy = GenerationPolicy(staleFor: .seconds(5), staleOnError: .seconds(5), refreshAhead: 0.5)
            let generator = cache.generator(policy) { [self] key in
                await Task.yield()
                return newValue(key, by: thread)
            }
            return [key: try await generator(key)]
        }
    }

    private func loadValue(_ key: Int, by thread: Int) async throws -> RaceValue {
        try await cache.value(forKey: key) { [self] key in
            await Task.yield()
            return newValue(key, by: thread)
        }
    }

    /// The key that the closure of another one loads: always a greater one, so no two loads wait for each other.
    private func inner(_ key: Int) -> Int? { Self.sharedKeys.contains(key + 1) ? key + 1 : nil }
}

/// A thread of a race.
private struct LoadRacer {
    private let race: LoadRace
    private let thread: Int
    private let ownKeys: [Int]
    private var random: Seeded
    private var end = RaceEnd()

    private init(_ thread: Int, in race: LoadRace, seed: UInt64) {
        (self.race, self.thread, random) = (race, thread, Seeded(seed))
        ownKeys = LoadRace.ownKeys(of: thread)
    }

    static func run(_ thread: Int, in race: LoadRace, seed: UInt64) -> RaceEnd {
        var racer = LoadRacer(thread, in: race, seed: seed)
        do {
            for _ in 0..<LoadRace.stepCount { try racer.step() }
        } catch {
            race.problems.add("\(error)")
        }
        return racer.end
    }

    // MARK: Steps

    private mutating func step() throws {
        let key = anyKey()
        switch Int.random(in: 0..<1000, using: &random) {
        case 0..<680: check(race.cache[key], of: key)
        case 680..<820: try load(key)
        case 820..<845: try loadInTasks(key)
        case 845..<885: try setOwn()
        case 885..<900: try setOthers()
        case 900..<935: try removeOwn()
        case 935..<945: try race.cache.remove(Int.random(in: LoadRace.sharedKeys, using: &random))
        case 945..<960: race.time.advance(by: .milliseconds(Int.random(in: 50..<1000, using: &random)))
        case 960..<970: changeMemory()
        case 970..<980: try removeMany()
        case 980..<982: try clear()
        default:
            let entry = try race.cache.entry(forKey: key)
            check(entry?.value, of: key)
        }
    }

    private mutating func anyKey() -> Int {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: return ownKey()
        case 5..<8: return Int.random(in: LoadRace.sharedKeys, using: &random)
        default:
            let other = Int.random(in: 0..<LoadRace.threadCount, using: &random)
            return LoadRace.ownKeys(of: other)[0]
        }
    }

    private mutating func ownKey() -> Int { ownKeys[Int.random(in: 0..<2, using: &random)] }

    private mutating func form() -> LoadRace.Form { LoadRace.Form.allCases.randomElement(using: &random) ?? .value }

    private mutating func load(_ key: Int) throws {
        let (form, other) = (form(), ownKey())
        let found = try race.load(form, [key, other, 3], by: thread)
        check(found)
    }

    private mutating func loadInTasks(_ key: Int) throws {
        let (race, thread, form, other) = (race, thread, form(), ownKey())
        let found = try waiting { try await race.loadInTasks(form, [key, other, 3], by: thread) }
        check(found)
    }

    private mutating func setOwn() throws {
        let key = ownKey()
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            let values = ownKeys.map { ($0, race.newValue($0, by: thread, isLoaded: false)) }
            try race.cache.setValues(values)
            for (key, value) in values { end.leastNumbers[key] = value.number }
        case 1:
            let value = race.newValue(key, by: thread, isLoaded: false)
            var old: RaceValue?
            try race.cache.update(key) { current in
                old = current
                current = value
            }
            check(old, of: key)
            end.leastNumbers[key] = value.number
        default:
            let value = race.newValue(key, by: thread, isLoaded: false)
            let isBrief = Bool.random(using: &random)
            try race.cache.setValue(value, forKey: key, maxAge: isBrief ? .seconds(1) : nil)
            end.leastNumbers[key] = value.number
        }
        check(race.cache[key], of: key)
    }

    private mutating func removeOwn() throws {
        let (key, number) = (ownKey(), race.newNumber())
        switch Int.random(in: 0..<3, using: &random) {
        case 0:
            let old = try race.cache.removeValue(forKey: key)
            check(old, of: key)
        case 1:
            try race.cache.removeValues(forKeys: ownKeys)
            for key in ownKeys { end.leastNumbers[key] = number }
        default: try race.cache.remove(key)
        }
        end.leastNumbers[key] = number
        check(race.cache[key], of: key)
    }

    private mutating func setOthers() throws {
        let isFilling = Bool.random(using: &random)
        let key = Int.random(in: isFilling ? LoadRace.fillingKeys : LoadRace.sharedKeys, using: &random)
        try race.cache.setValue(race.newValue(key, by: thread, isLoaded: false), forKey: key)
    }

    private mutating func changeMemory() {
        switch Int.random(in: 0..<3, using: &random) {
        case 0: race.cache.memory.removeAll()
        case 1: race.cache.memory.trim(toCount: 4)
        default: race.cache.memory.countLimit = Int.random(in: 10..<40, using: &random)
        }
    }

    private mutating func removeMany() throws {
        switch Int.random(in: 0..<3, using: &random) {
        case 0: try race.cache.trim(toCount: 20)
        case 1: try race.cache.removeAll { $0.value.number % 5 == 0 }
        default: try race.cache.removeExpired()
        }
    }

    private mutating func clear() throws {
        let number = race.newNumber()
        try race.cache.removeAll()
        for key in ownKeys {
            end.leastNumbers[key] = number
            check(race.cache[key], of: key)
        }
    }

    // MARK: Checks

    private mutating func check(_ values: [Int: RaceValue]) {
        for (key, value) in values { check(value, of: key) }
    }

    /// Notes a problem if a value is another key's, or older than the last write of this thread.
    private mutating func check(_ value: RaceValue?, of key: Int) {
        guard let value else { return }
        end.lastValues[key] = value
        let least = end.leastNumbers[key] ?? 0
        if value.key != key { race.problems.add("thread \(thread) got \(value) for key \(key)") }
        if value.number < least { race.problems.add("thread \(thread) got \(value) after write \(least)") }
    }
}
