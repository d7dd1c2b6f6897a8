import Foundation
import Larder
import LarderTestSupport
import Testing

/// Entries that are written again while they are read: value, extended data and metadata are of one write.
struct OvertakenReadTests {
    private let place: TemporaryStore
    private let hook = CodecHook()

    init() throws { place = try TemporaryStore(of: #fileID) }

    /// A cache whose entry of key 1 is written again while the next read decodes it.
    ///
    /// Each value is the number of bytes of its extended data.
    private func cache(_ values: ValuePlace, maxAge: MaxAge? = nil) throws -> Cache<Int, Int> {
        let cache = try hook.cache(in: place.manager(for: values), values)
        try cache.setValue(1, forKey: 1, maxAge: maxAge, extendedData: Data(count: 1))
        cache.memory.removeAll()
        hook.runBesideDecoding { try cache.setValue(2, forKey: 1, maxAge: maxAge, extendedData: Data(count: 2)) }
        return cache
    }

    private func expectWhole(
        _ entry: CacheEntry<Int, Int>?, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let entry = try #require(entry, sourceLocation: sourceLocation)
        #expect(entry.extendedData?.count == entry.value, sourceLocation: sourceLocation)
        // The payload is one digit.
        #expect(entry.metadata.size == entry.value + 1, sourceLocation: sourceLocation)
    }

    @Test(arguments: ValuePlace.allCases, [false, true])
    func `a read of an entry is of one write`(values: ValuePlace, isExpired: Bool) throws {
        let cache = try cache(values, maxAge: isExpired ? .seconds(-1) : nil)
        try expectWhole(cache.entry(forKey: 1, allowingExpired: isExpired))
        #expect(hook.isDone)
        #expect(try cache.entry(forKey: 1, allowingExpired: true)?.value == 2)
    }

    @Test(arguments: ValuePlace.allCases, [EntryOrder.key, .written, .accessed, .size])
    func `a listed entry is of one write`(values: ValuePlace, order: EntryOrder) throws {
        let cache = try cache(values)
        let entries = Array(cache.entries(orderedBy: order))
        #expect(hook.isDone && entries.count == 1)
        try expectWhole(entries.first)
    }

    @Test(arguments: ValuePlace.allCases)
    func `the old entry that a closure gets is of one write, and so is the result`(values: ValuePlace) async throws {
        let cache = try cache(values, maxAge: .seconds(-1))
        let given = Told<CacheEntry<Int, Int>?>()
        let entry = try await cache.entry(forKey: 1) { _, old in
            given.add(old)
            return .notModified
        }
        #expect(hook.isDone && given.all.count == 1)
        try expectWhole(given.all.first ?? nil)
        try expectWhole(entry)
        #expect(try await cache.entry(forKey: 1, allowingExpired: true)?.value == 2)
    }
}
