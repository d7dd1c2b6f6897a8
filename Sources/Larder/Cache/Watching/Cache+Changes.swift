extension Cache {
    /// What changes from now on, through any handle of this process, as the net of intervals.
    ///
    /// The first change starts an interval, and at its end a batch is sent; while nothing changes nothing is sent and no
    /// timer runs. A reader that takes its time delays no writer: pending changes hold keys, and values are read when the
    /// batch is taken, which is no use of them. Beyond 10,000 pending keys, and for a clear or purge,
    /// ``CacheChanges/isReset`` is true: read again.
    ///
    /// Extended data that is written alone is no change: a batch tells of values.
    ///
    /// The stream keeps the handle alive. It ends when it is dropped, and when the manager is closed or the sub-cache
    /// superseded or removed; then what was pending still comes, as a reset where its values cannot be read any more.
    public func changes(every interval: Duration = .milliseconds(100)) -> AsyncStream<CacheChanges<Key, Value>> {
        let stream = core.changes.changes(
            every: interval, timekeeper: ledger.store.timekeeper, owner: ObjectIdentifier(manager)
        ) { [self] keys in
            do throws(CacheError) {
                return try await offload { () throws(CacheError) in try self.quietValues(keys) }
            } catch {
                return nil
            }
        }
        if manager.isClosed { core.changes.finish(for: ObjectIdentifier(manager)) }
        return stream
    }

    /// The values of those keys that have one, which are not used by that.
    private func quietValues(_ keys: [Key]) throws(CacheError) -> [Key: Value] {
        _ = try manager.store()
        let stored = try stored(keys)
        let rows = try ledger.currentRows(stored.map(\.stored))
        var values: [Key: Value] = [:]
        for (item, row) in zip(stored, rows) {
            guard let row, let entry = core.passed(ListedRow(key: item.stored, row: row), terms, now: terms.now())
            else { continue }
            values[item.key] = entry.value
        }
        return values
    }
}
