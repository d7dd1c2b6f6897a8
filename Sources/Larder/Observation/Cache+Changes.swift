internal import LarderStore

extension Cache {
    /// Returns what changes from now on, through any handle of this manager, as the net of intervals.
    ///
    /// The first change starts an interval, and at its end a batch is sent. While nothing changes nothing is sent, and no
    /// timer runs. A slow reader delays no writer: pending changes hold keys, and values are read when the batch is taken,
    /// which doesn't count as access. Beyond 10,000 pending keys, and for a clear or purge, ``CacheChanges/isReset`` is true:
    /// read again.
    ///
    /// Extended data that is written alone is no change. The stream keeps the handle alive. It ends when it is dropped, when
    /// the manager is closed, and when the manager opens the cache under another version or removes it; what was pending
    /// still comes, as a reset if its values cannot be read.
    ///
    /// - Parameter interval: The time between two batches.
    public func changes(every interval: Duration = .milliseconds(100)) -> AsyncStream<CacheChanges<Key, Value>> {
        let hub = shared.copies.changes
        let stream = hub.changes(every: interval, timekeeper: manager.timekeeper, owner: shared.streamOwner) { keys in
            do throws(CacheError) {
                return try await self.reading { () throws(CacheError) in try self.quietValues(keys) }
            } catch {
                return nil
            }
        }
        if !isCurrent { hub.finish(for: shared.streamOwner) }
        return stream
    }

    /// A Boolean value that indicates whether the store is open and has the cache under this version.
    private var isCurrent: Bool {
        if manager.store.isClosed { return false }
        do throws(StoreError) { return try !rows.isSuperseded() } catch { return false }
    }

    /// Returns the values of those keys that have one, which does not count as access.
    private func quietValues(_ keys: [Key]) throws(CacheError) -> [Key: Value] {
        var wanted: [StoredKey: Key] = [:]
        for key in keys { wanted[try stored(key)] = key }
        let found = try throwing("read values") { () throws(StoreError) in
            try rows.requireCurrent()
            return try rows.rows(Array(wanted.keys))
        }
        let now = rows.store.time.now()
        var values: [Key: Value] = [:]
        for row in found where row.facts.end >= now {
            if let key = wanted[row.facts.key], let value = valueOrReported(of: row) { values[key] = value }
        }
        return values
    }
}
