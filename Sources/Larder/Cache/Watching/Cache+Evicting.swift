extension Cache {
    /// Looks at every entry after each interval, and evicts those that a closure picks, unless they were replaced meanwhile.
    ///
    /// The closure is called on a thread of its own while nothing is held, and may use the cache. The first pass comes
    /// after the first interval, and each later one an interval after the last has ended; it is no use of an entry, and
    /// entries that are over are not shown. Pinned entries go as others. An interval of zero or less is refused: that is
    /// logged, and nothing is evicted. One below a millisecond is a millisecond.
    ///
    /// - Returns: What keeps it going: dropping it cancels.
    public func evict(
        every interval: Duration, where shouldEvict: @escaping @Sendable (CacheEntry<Key, Value>) -> Bool
    ) -> EvictionTask {
        evict(interval) { (cache, goesOn) throws in
            try cache.removeEntries(.decider) { entry in
                goesOn() && shouldEvict(entry)
            } while: {
                goesOn()
            }
        }
    }

    /// Looks at the key and the metadata of every entry after each interval, and evicts those that a closure picks; no value
    /// is read.
    ///
    /// It works as ``evict(every:where:)`` does.
    public func evict(
        every interval: Duration, whereMetadata shouldEvict: @escaping @Sendable (Key, EntryMetadata) -> Bool
    ) -> EvictionTask {
        evict(interval) { (cache, goesOn) throws in
            try cache.removeEntries(.decider, whereMetadata: { goesOn() && shouldEvict($0, $1) }, while: { goesOn() })
        }
    }

    private func evict(
        _ interval: Duration, _ pass: @escaping @Sendable (Cache, () -> Bool) throws -> Int
    ) -> EvictionTask {
        if interval <= .zero {
            let error = CacheError(
                .invalidConfiguration, "the interval of a decider is \(interval); give one that is longer than nothing")
            report(error, "evict entries")
        }
        return EvictionTask(every: interval, ledger.store.timekeeper) { [self] goesOn in
            do {
                try checkWritable("evict entries")
                _ = try pass(self, goesOn)
                return !ledger.isSuperseded
            } catch let error as CacheError {
                if error.code == .closed || error.code == .superseded { return false }
                report(error, "evict entries")
                return error.code != .readOnly
            } catch {
                return false
            }
        }
    }
}
