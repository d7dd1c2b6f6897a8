import Larder
import LarderTestSupport
import Testing

/// Expects that everything that can be asked of a cache says the same, and that nothing is left open.
func expectInvariants<Key, Value: Equatable>(
    _ cache: Cache<Key, Value>, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    try expectAgreement(cache, sourceLocation: sourceLocation)
    // Upkeep may be reading at this moment.
    try Waiting.until { try StoreProbe(cache.manager).isIdle }
}

/// Expects that all reads of a cache agree, and closes nothing.
func expectAgreement<Key, Value: Equatable>(
    _ cache: Cache<Key, Value>, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let listed = cache.map { ($0.key, $0.value) }
    #expect(try cache.count == listed.count, sourceLocation: sourceLocation)
    #expect(try cache.isEmpty == listed.isEmpty, sourceLocation: sourceLocation)
    let dictionary = Dictionary(listed) { first, _ in first }
    #expect(dictionary.count == listed.count, "no key twice", sourceLocation: sourceLocation)
    #expect(try cache.snapshot() == dictionary, sourceLocation: sourceLocation)
    for (key, value) in listed {
        // Memory first, the disk alone, without the value, and without anything.
        #expect(try cache.value(forKey: key) == value, sourceLocation: sourceLocation)
        #expect(try cache.entry(forKey: key)?.value == value, sourceLocation: sourceLocation)
        #expect(try cache.metadata(forKey: key) != nil, sourceLocation: sourceLocation)
        #expect(try cache.contains(key), sourceLocation: sourceLocation)
    }
    #expect(try cache.values(forKeys: listed.map(\.0)) == dictionary, sourceLocation: sourceLocation)
    let rows = try StoreProbe(cache.manager).rows(ofCache: cache.name)
    #expect(rows.count >= listed.count, sourceLocation: sourceLocation)
    #expect(try cache.sizeOnDisk == rows.size, sourceLocation: sourceLocation)
    #expect(rows.unsound == 0, "size is not that of the bytes", sourceLocation: sourceLocation)
}
