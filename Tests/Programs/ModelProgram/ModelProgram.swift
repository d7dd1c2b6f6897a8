import Foundation
import Larder
import Synchronization

/// Does random operations on a store, and prints a line for each: `.ci/compare-builds` compares those of two builds.
///
/// Usage: `larder-test-model SEED COUNT FOLDER`, with a folder that is there and empty.
@main
struct ModelProgram {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let seed = UInt64(arguments[1]), let count = Int(arguments[2]) else {
            FileHandle.standardError.write(Data("Usage: larder-test-model SEED COUNT FOLDER\n".utf8))
            exit(2)
        }
        // Should the script never end it, it ends itself.
        alarm(3600)
        try Model(seed: seed, folder: URL(fileURLWithPath: arguments[3], isDirectory: true)).run(count)
    }
}

/// The differences that section 11 of DESIGN.md allows, which a run keeps out of its lines.
///
/// - Access times and the order of use are exact to the grain: `accessedAt` and `orderedBy: .accessed` are left out.
/// - Statistics and the numbers of a `MaintenanceReport` count different things: they are left out.
/// - Upkeep deletes expired rows at different times: after `maintain()` every cache deletes them.
/// - A trim deletes different expired rows, also of other caches: before a trim every cache deletes them.
/// - `update` of an expired entry to nil leaves the row in one build: after it the program removes the key.
/// - Entries with an equal place in an order come in any order: they are sorted by key.
/// - Handles have no ages of their own: those on one cache are all opened with the same age.
/// - The clock is never set back, and `openedAt` is exact to the minute: it is left out.
enum Exclusions {
    /// A Boolean value that indicates whether a trim prints the keys that are left.
    ///
    /// If not, it prints a number and empties the cache, since other entries may be left in each build.
    static let printsTrimmedKeys = true

    /// A Boolean value that indicates whether every key is read before a trim, in a random order.
    ///
    /// If not, the order of use is that of all operations before. In it the builds differ: the new one counts neither
    /// `touch` nor, without a limit on disk, a replacement, and forgets some reads when it is closed.
    static let readsBeforeTrims = true
}

/// The store of a run, from one opening to the next.
struct Session {
    let manager: CacheManager
    var numbers: Cache<Int, String>
    var words: Cache<String, [Int]>
    var blobs: Cache<Int, Data>

    /// Deletes the expired entries of all caches, and returns their numbers.
    func removeExpired() throws -> String {
        "\(try numbers.removeExpired()) \(try words.removeExpired()) \(try blobs.removeExpired())"
    }
}

/// A run of random operations, all of which follow from its seed.
final class Model {
    let clock = ModelClock()
    var random: SplitMix
    private let folder: URL
    private var number = 0
    private var versions: [String: Int] = [:]

    init(seed: UInt64, folder: URL) {
        random = SplitMix(state: seed)
        self.folder = folder
    }

    /// Does so many operations.
    func run(_ count: Int) throws {
        while number < count {
            var session = try openSession()
            while number < count, !chance(200) { try step(&session) }
            let last = session
            attempt("close") {
                try last.manager.close()
                return "\(refusals(of: last.numbers)), \(refusals(of: last.blobs))"
            }
        }
    }

    /// Prints what a call answers, at a moment of its own: no two operations write or access at the same one.
    func attempt(_ operation: String, _ body: () throws -> String) {
        number += 1
        clock.advance(by: roll(1..<50))
        let line = "\(number) \(operation) -> \(outcome(body))\n"
        FileHandle.standardOutput.write(Data(line.utf8))
    }

    func roll(_ range: Range<Int>) -> Int { Int.random(in: range, using: &random) }

    /// Returns true once in so many times.
    func chance(_ times: Int) -> Bool { roll(0..<times) == 0 }
    func pick<Choice>(_ choices: [Choice]) -> Choice { choices[roll(0..<choices.count)] }

    /// Returns an age of an entry's own, half of the time none.
    func sampleAge() -> MaxAge? {
        let milliseconds = Double(roll(1..<200_000))
        switch roll(0..<16) {
        case 0, 1: return MaxAge.milliseconds(milliseconds)
        case 2, 3: return MaxAge.milliseconds(milliseconds).sinceLastAccess
        case 4: return MaxAge.until(ModelClock.date(of: clock.now + Int64(roll(-20_000..<200_000))))
        case 5: return MaxAge.unlimited
        case 6: return MaxAge.seconds(Double(roll(-1..<1)))
        case 7: return MaxAge.seconds(chance(4) ? .nan : 100)
        default: return nil
        }
    }

    private func openSession() throws -> Session {
        if chance(4) { versions[pick(["numbers", "words", "blobs"]), default: 1] += 1 }
        let now: @Sendable () -> Date = { [clock] in ModelClock.date(of: clock.now) }
        let manager = try CacheManager(
            url: folder.appendingPathComponent("store.sqlite"),
            configuration: CacheManager.Configuration(clock: now, maintenanceInterval: nil))
        return Session(
            manager: manager, numbers: try open("numbers", .unlimited, in: manager),
            words: try open("words", .seconds(100), in: manager),
            blobs: try open("blobs", .seconds(100).sinceLastAccess, in: manager))
    }

    private func open<Key: ModelKey, Value: ModelValue>(
        _ name: String, _ maxAge: MaxAge, in manager: CacheManager
    ) throws -> Cache<Key, Value> {
        let version = CacheVersion.custom("\(versions[name, default: 1])")
        let memory = pick([MemoryLimits(), MemoryLimits(countLimit: 10), MemoryLimits.disabled])
        clock.advance(by: 1)
        let cache: Cache<Key, Value> = try manager.cache(
            named: name, version: version, maxAge: maxAge,
            options: CacheOptions(memory: memory, accessGrain: .zero, clearsOnMemoryPressure: false))
        attempt("open \(name) \(version.description), limit \(memory.countLimit ?? -1) in memory") {
            "size \(try cache.sizeOnDisk), " + cache.entries().map(\.text).joined(separator: ", ")
        }
        return cache
    }

    /// Opens another version of a cache, and asks the handle on the version before.
    private func supersede<Key: ModelKey, Value: ModelValue>(
        _ path: WritableKeyPath<Session, Cache<Key, Value>>, of session: inout Session
    ) throws {
        let old = session[keyPath: path]
        versions[old.name, default: 1] += 1
        session[keyPath: path] = try open(old.name, old.maxAge, in: session.manager)
        attempt("\(old.name) of the version before") { refusals(of: old) }
    }

    /// Returns the answers of a handle that can no longer be used.
    private func refusals<Key: ModelKey, Value: ModelValue>(of cache: Cache<Key, Value>) -> String {
        let (key, value) = (pick(Key.space), Value.sample(&random))
        let answers = [
            outcome { nilOrText(try cache.value(forKey: key)) }, outcome { "\(try cache.count)" },
            outcome { "\(try cache.touch(key))" }, done { try cache.setValue(value, forKey: key) },
            done { try cache.remove(key) },
        ]
        return answers.joined(separator: ", ")
    }

    // MARK: Operations

    private func step(_ session: inout Session) throws {
        let current = session
        switch roll(0..<200) {
        case 0..<8:
            let step = chance(12) ? 100_000 : roll(1..<10_000)
            attempt("clock forward by \(step)") { done { clock.advance(by: step) } }
        case 8..<12: transaction(current.numbers, current.words, current.manager)
        case 12..<15: transaction(current.words, current.blobs, current.manager)
        case 15..<18: transaction(current.blobs, current.numbers, current.manager)
        case 18..<20: attempt("cacheInfo") { try info(current.manager) }
        case 20..<22:
            attempt("maintain") {
                try current.manager.maintain()
                // Upkeep deletes expired rows at different times.
                _ = try current.removeExpired()
                return try info(current.manager)
            }
        case 22: try stepOnAll(&session)
        default:
            switch roll(0..<3) {
            case 0: CacheOperations(model: self, session: current, cache: current.numbers).run()
            case 1: CacheOperations(model: self, session: current, cache: current.words).run()
            default: CacheOperations(model: self, session: current, cache: current.blobs).run()
            }
        }
    }

    /// Does an operation that concerns all entries of a cache or of all caches.
    private func stepOnAll(_ session: inout Session) throws {
        let manager = session.manager
        switch roll(0..<8) {
        case 0: try supersede(\.numbers, of: &session)
        case 1: try supersede(\.blobs, of: &session)
        case 2, 3:
            let tag = pick(Attributes.allTags)
            attempt("removeAll tagged \(tag) of all caches") { "\(try manager.removeAll(tagged: tag))" }
        case 4: attempt("removeAll of all caches") { done { try manager.removeAll() } }
        default: attempt("flush") { done { try manager.flush() } }
        }
    }

    private func info(_ manager: CacheManager) throws -> String {
        let caches = try manager.cacheInfo()
        return caches.map { "\($0.name) \($0.version) \($0.count) \($0.sizeOnDisk)" }.sorted().joined(separator: ", ")
    }

    private func transaction<Key: ModelKey, Value: ModelValue, OtherKey: ModelKey, OtherValue: ModelValue>(
        _ one: Cache<Key, Value>, _ other: Cache<OtherKey, OtherValue>, _ manager: CacheManager
    ) {
        let (read, removed, written) = (pick(Key.space), pick(Key.space), pick(Key.space))
        let (otherRead, otherWritten) = (pick(OtherKey.space), pick(OtherKey.space))
        let (value, otherValue) = (Value.sample(&random), OtherValue.sample(&random))
        let (attributes, isThrown) = (Attributes(self), chance(4))
        let keys = "\(read.text) \(removed.text) \(written.text) and \(otherRead.text) \(otherWritten.text)"
        attempt("transaction of \(one.name) and \(other.name), \(keys), \(attributes.text), thrown \(isThrown)") {
            // In one build a plain read inside the body counts as access to what is written, and so does a read of a body
            // that throws.
            defer { _ = (one[read], one[written], one[removed], other[otherRead], other[otherWritten]) }
            var answers: [String] = []
            do {
                try manager.transaction { transaction in
                    // Reads come first, and later only those of the key that is written last: one build writes at once,
                    // the other one at the end, and reads and writes share one order of use.
                    answers.append(nilOrText(try transaction.value(forKey: read, in: one)))
                    answers.append(nilOrText(try transaction.value(forKey: otherRead, in: other)))
                    try transaction.removeValue(forKey: removed, in: one)
                    try transaction.setValue(otherValue, forKey: otherWritten, in: other)
                    try transaction.setValue(
                        value, forKey: written, in: one, cost: attributes.cost, maxAge: attributes.maxAge,
                        extendedData: attributes.extendedData, tags: attributes.tags, pinned: attributes.pinned)
                    // One build reads what is to be written, also if its age has it expire at once.
                    if attributes.maxAge == nil {
                        answers.append("inside " + nilOrText(try transaction.value(forKey: written, in: one)))
                    }
                    answers.append("outside " + outcome { nilOrText(try one.value(forKey: written)) })
                    answers.append(done { try other.setValue(otherValue, forKey: otherWritten) })
                    if isThrown { throw Refusal() }
                }
            } catch is Refusal {
                answers.append("thrown")
            }
            return answers.joined(separator: ", ")
        }
    }
}

/// A clock that the model moves by hand.
final class ModelClock: Sendable {
    private let milliseconds = Atomic<Int64>(1_700_000_000_000)

    var now: Int64 { milliseconds.load(ordering: .relaxed) }

    func advance(by step: Int) { milliseconds.wrappingAdd(Int64(step), ordering: .relaxed) }

    static func date(of milliseconds: Int64) -> Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }
}

/// A generator of random numbers that repeats itself.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

/// The attributes of a write, each left out or random.
struct Attributes {
    static let allTags = ["red", "green", "blue"]
    let cost: Int?
    let maxAge: MaxAge?
    let extendedData: Data?
    let tags: Set<String>
    let pinned: Bool?

    init(_ model: Model) {
        cost = model.chance(3) ? model.roll(0..<5000) : nil
        maxAge = model.sampleAge()
        extendedData = model.chance(3) ? Data(repeating: UInt8(model.roll(0..<256)), count: model.roll(0..<40)) : nil
        tags = Set(Self.allTags.filter { _ in model.chance(4) })
        pinned = model.chance(4) ? model.chance(2) : nil
    }

    var text: String {
        let numbers = "cost \(cost.map { "\($0)" } ?? "none"), age \(maxAge?.description ?? "none")"
        let pin = pinned.map { "\($0)" } ?? "none"
        return "\(numbers), extended \(nilOrText(extendedData)), tags \(tags.sorted()), pinned \(pin)"
    }
}

/// Returns the answer of a call, or the code of its error.
func outcome(_ body: () throws -> String) -> String {
    do {
        return try body()
    } catch let error as CacheError {
        return "error \(error.code.description)"
    } catch {
        return error is Refusal ? "thrown" : "another error"
    }
}
