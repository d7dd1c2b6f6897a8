internal import LarderStore

extension Cache {
    /// Returns a stream of the changes from now on, through any handle of this manager, in batches.
    ///
    /// The first change is sent at once. Then an interval begins, and what changes in it is sent at its end. If nothing changes,
    /// nothing is sent. A slow reader delays no writer: pending changes hold keys, and values are read when the batch
    /// is taken, which doesn't count as access. After more than 10,000 pending keys, and after a clear or purge,
    /// ``CacheChanges/isReset`` is true: read everything again.
    ///
    /// At the first request the stream lists the revisions of up to 10,000 entries. So after a commit of another manager or process on
    /// the file it tells which entries that has changed. If the cache has more entries, or if such a commit comes before they are
    /// listed, the batch is a reset.
    ///
    /// Writing only extended data, an age or a pin is no change. After the next commit of another process such entries may be
    /// reported as updated. The stream keeps the handle alive. It ends when it is released, when
    /// the manager is closed, and when the manager opens the cache under another version or removes it. Pending
    /// changes are still sent, as a reset if their values cannot be read.
    ///
    /// - Parameter interval: The minimum time between two batches.
    /// - Returns: The stream.
    public func changes(every interval: Duration = .milliseconds(100)) -> AsyncStream<CacheChanges<Key, Value>> {
        let known = KnownRows(self)
        return copies.changes.changes(
            every: interval, timekeeper: manager.timekeeper, begin: { await known.begin() },
            foreign: { await known.changedKeys() }
        ) { keys in
            do throws(CacheError) {
                let found = try await self.reading { () throws(CacheError) in try self.quietValues(keys) }
                known.note(found.versions, of: keys)
                return found.values
            } catch {
                return nil
            }
        } wasReset: {
            known.reset()
        }
    }

    /// Returns a stream of the value of a key: the one that it has now, and the one after each change; nil for none.
    ///
    /// A row that was sent is not sent again, whatever others commit. It is as ``changes(every:)``: a read is no access, expiration is no change until the entry is swept, and it ends as that
    /// one does. While its value cannot be read, nothing is sent.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - interval: The minimum time between two values. Of several changes within it only the last one is seen.
    public func changes(
        forKey key: Key, every interval: Duration = .milliseconds(100)
    ) -> AsyncStream<Value?> {
        copies.changes.changes(of: key, every: interval, timekeeper: manager.timekeeper) {
            () async throws(CacheError) in
            let found = try await self.reading { () throws(CacheError) in try self.quietValues([key]) }
            let value = found.values[key]
            return (value, value == nil ? RowVersion.none : found.versions[key] ?? .none)
        }
    }

    /// The number of readers of streams that wait.
    package var streamReaders: Int { copies.changes.streams.reduce(0) { $0 + $1.waitingCount } }

    /// Returns the values of those keys that have one, and the versions of all rows that there are, which does not count as access.
    private func quietValues(
        _ keys: [Key]
    ) throws(CacheError) -> (values: [Key: Value], versions: [Key: RowVersion]) {
        var wanted: [StoredKey: Key] = [:]
        for key in keys { wanted[try stored(key)] = key }
        let found = try throwing("read values") { () throws(StoreError) in
            try rows.requireCurrent()
            return try rows.rows(Array(wanted.keys))
        }
        let now = rows.store.time.now()
        var (values, versions): ([Key: Value], [Key: RowVersion]) = ([:], [:])
        for row in found {
            guard let key = wanted[row.header.key] else { continue }
            versions[key] = row.header.summary.version
            if row.header.end >= now, let value = valueOrReported(of: row) { values[key] = value }
        }
        return (values, versions)
    }
}

/// The changes of a cache during an interval.
///
/// Only the last change of a key counts, so no key is in both lists.
public struct CacheChanges<Key: Hashable, Value> {
    /// The keys that were set, with their values at the time when the batch is taken.
    public let updated: [Key: Value]

    /// The keys whose entries were removed, swept or evicted.
    public let removed: Set<Key>

    /// A Boolean value that indicates whether any key may have changed, so that everything is to be read again.
    ///
    /// It is true if the changes are too many to list, if the cache was cleared or purged, and if another manager or process has
    /// committed and it is not known what. Then ``updated`` and ``removed`` are empty.
    public let isReset: Bool

    package init(updated: [Key: Value], removed: Set<Key>, isReset: Bool) {
        self.updated = updated
        self.removed = removed
        self.isReset = isReset
    }
}

extension CacheChanges: Sendable where Key: Sendable, Value: Sendable {}
extension CacheChanges: Equatable where Value: Equatable {}
