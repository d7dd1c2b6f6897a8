/// A pass over the entries of a sub-cache, in key order.
///
/// It reads a page at a time, and between pages holds neither lock nor transaction: the loop's body may read, write and
/// remove, and the pass may be dropped anywhere. Each key comes at most once, what was there throughout comes for sure,
/// what was added after the start is not waited for. Entries that are over or do not decode are skipped. A pass fills no
/// memory and is no use of an entry. A failure ends it, and goes to the log, the events and the statistics; one that
/// concerns only the file of a large value leaves that entry out. At its end
/// it gives nil for ever.
public struct CacheGenerator<Key: Codable & Hashable & Sendable, Value: Sendable>: IteratorProtocol, Sendable {
    @usableFromInline var pass: EntryPass<Key, Value>

    @usableFromInline
    init(_ cache: Cache<Key, Value>) {
        pass = EntryPass(cache)
    }

    /// The next entry, or nil at the end.
    @inlinable
    public mutating func next() -> (key: Key, value: Value)? { pass.nextPair() }
}

extension Cache: Sequence {
    /// Starts a pass over the entries, in key order.
    @inlinable
    public func makeIterator() -> CacheGenerator<Key, Value> {
        CacheGenerator(self)
    }

    /// Every entry that is served now, as of one moment.
    public func snapshot() throws(CacheError) -> [Key: Value] {
        _ = try manager.store()
        let rows = try ledger.allRows(terms.age)
        var values: [Key: Value] = [:]
        let now = terms.now()
        for row in rows {
            if let entry = core.passed(row, terms, now: now) { values[entry.key] = entry.value }
        }
        return values
    }

    /// Tells everyone of a pass that ended early, which cannot throw.
    func noteFailedPass(_ error: CacheError) {
        ledger.count { $0.failures += 1 }
        core.report(.readFailed, "A pass over cache \"\(name)\" ended early: \(error.message)", .error, error: error)
    }
}
