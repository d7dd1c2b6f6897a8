import Foundation
import Larder
import LarderTestSupport
import Testing

/// Entries in files that are written or removed between a look at the row and one at the file.
///
/// What does it is the clock, which reads ask in between.
struct OvertakenReadTests {
    private let place: StorePlace
    private let hook = ClockHook()
    private let cache: Cache<Int, Data>

    init() throws {
        place = try StorePlace()
        let (hook, time) = (hook, place.time)
        let manager = try place.manager { configuration in
            configuration.clock = {
                hook.run()
                return time.now
            }
        }
        cache = try manager.cache(
            named: "files", version: "1", maxAge: .hours(1),
            options: CacheOptions(memory: .disabled, inlineLimit: 0))
    }

    /// Something that happens whenever the clock is read, but not within itself.
    private final class ClockHook: Sendable {
        private struct State: Sendable {
            var body: (@Sendable (Int) throws -> Void)?
            var calls = 0
            var isRunning = false
        }

        private let state = Locked(State())

        /// - Parameter body: Learns how often the clock has been read.
        func set(_ body: (@Sendable (Int) throws -> Void)?) { state.change { $0 = State(body: body) } }

        func run() {
            let (body, call) = state.change { state -> ((@Sendable (Int) throws -> Void)?, Int) in
                guard let body = state.body, !state.isRunning else { return (nil, 0) }
                state.isRunning = true
                state.calls += 1
                return (body, state.calls)
            }
            guard let body else { return }
            do { try body(call) } catch { Issue.record(error) }
            state.change { $0.isRunning = false }
        }
    }

    /// Writes the key anew, with another size of everything, whenever the clock is read.
    private func overwriteAlways(_ key: Int, maxAge: MaxAge? = nil) throws {
        let cache = cache
        try cache.setValue(Data(count: 100), forKey: key, maxAge: maxAge, extendedData: Data(count: 100))
        hook.set { call in
            try cache.setValue(
                Data(count: 1000 + call), forKey: key, maxAge: maxAge, extendedData: Data(count: 1000 + call))
        }
    }

    /// Expects that all of an entry was written in one step.
    private func expectWhole(
        _ entry: CacheEntry<Int, Data>?, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let entry = try #require(entry, sourceLocation: sourceLocation)
        #expect(entry.value.count >= 1000, sourceLocation: sourceLocation)
        #expect(entry.extendedData?.count == entry.value.count, sourceLocation: sourceLocation)
        #expect(entry.metadata.size == 2 * entry.value.count, sourceLocation: sourceLocation)
    }

    @Test(arguments: [false, true])
    func `the metadata of an entry are those of its value, though it is written anew meanwhile`(
        allowingExpired: Bool
    ) throws {
        try overwriteAlways(1)
        defer { hook.set(nil) }
        try expectWhole(try cache.entry(forKey: 1, allowingExpired: allowingExpired))
    }

    @Test(arguments: EntryOrder.all)
    func `the metadata of a listed entry are those of its value`(order: EntryOrder) throws {
        try overwriteAlways(1)
        defer { hook.set(nil) }
        let entries = Array(cache.entries(orderedBy: order))
        #expect(entries.count == 1)
        try expectWhole(entries.first)
    }

    @Test func `what a generator is given of the old entry is of one writing`() async throws {
        try overwriteAlways(1, maxAge: .seconds(-1))
        let given = Told<CacheEntry<Int, Data>?>()
        let entry = try await cache.entry(forKey: 1) { _, old in
            given.add(old)
            return .notModified
        }
        hook.set(nil)
        #expect(given.all.count == 1)
        try expectWhole(given.all.first ?? nil)
        #expect(entry.value == given.all.first??.value && entry.extendedData == given.all.first??.extendedData)
    }

    @Test func `a task's pass goes on behind a page whose entries have all gone between row and file`() async throws {
        // Each stands on a page of its own.
        try await cache.setValues((1...4).map { ($0, Data(repeating: UInt8($0), count: 300_000)) })
        let cache = cache
        hook.set { call in if call == 1 { try cache.removeValues(forKeys: [1, 3]) } }
        defer { hook.set(nil) }
        var seen: [Int] = []
        for try await (key, value) in cache.async {
            #expect(value.first == UInt8(key))
            seen.append(key)
        }
        // What went meanwhile may have been read ahead.
        #expect(Set(seen).isSuperset(of: [2, 4]) && Set(seen).count == seen.count)
    }
}

extension EntryOrder {
    fileprivate static let all: [EntryOrder] = [.key, .written, .accessed, .size]
}
