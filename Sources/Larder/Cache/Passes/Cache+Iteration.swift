extension Cache: Sequence {
    /// An iteration over the entries of a cache, in key order.
    ///
    /// It reads a page of rows at a time and holds no lock and no transaction between pages, so the loop may read, write and
    /// remove. Each key comes at most once. Every entry that is there throughout comes; one that is added after the start may
    /// not. Entries that have expired or do not decode are skipped. Iterating fills no memory and doesn't count as access.
    ///
    /// If a read fails, the iteration ends, and the failure goes to the log, the events and the statistics. If only the file of
    /// a large value cannot be read, that entry is left out.
    public struct Iterator: IteratorProtocol, Sendable {
        @usableFromInline var pass: EntryPass<Key, Value>

        @usableFromInline
        init(_ cache: Cache<Key, Value>) {
            pass = EntryPass(cache)
        }

        /// Returns the next entry, or nil at the end and from then on.
        @inlinable
        public mutating func next() -> (key: Key, value: Value)? { pass.nextPair() }
    }

    /// Starts an iteration over the entries, in key order.
    @inlinable
    public func makeIterator() -> Iterator { Iterator(self) }

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

/// An iteration over the entries of a cache, in key order.
public typealias CacheGenerator<Key: Codable & Hashable & Sendable, Value: Sendable> = Cache<Key, Value>.Iterator
