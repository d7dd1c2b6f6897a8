internal import LarderStore

extension Cache {
    /// Returns a stream of the changes from now on, through any handle of this manager, in batches.
    ///
    /// The first change is sent at once. Then an interval begins, and what changes in it is sent at its end. If nothing changes,
    /// nothing is sent. A commit of another manager or process on the file is a reset, because what it changed is not known. A slow reader delays no writer: pending changes hold keys, and values are read when the batch
    /// is taken, which doesn't count as access. After more than 10,000 pending keys, and after a clear or purge,
    /// ``CacheChanges/isReset`` is true: read everything again.
    ///
    /// Writing only extended data is no change. The stream keeps the handle alive. It ends when it is released, when
    /// the manager is closed, and when the manager opens the cache under another version or removes it. Pending
    /// changes are still sent, as a reset if their values cannot be read.
    ///
    /// - Parameter interval: The minimum time between two batches.
    /// - Returns: The stream.
    public func changes(every interval: Duration = .milliseconds(100)) -> AsyncStream<CacheChanges<Key, Value>> {
        let hub = copies.changes
        let stream = hub.changes(every: interval, timekeeper: manager.timekeeper) { keys in
            do throws(CacheError) {
                return try await self.reading { () throws(CacheError) in try self.quietValues(keys).mapValues(\.value) }
            } catch {
                return nil
            }
        }
        if !isCurrent { core.streamsToEnd()() }
        return stream
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
        let stream = copies.changes.changes(of: key, every: interval, timekeeper: manager.timekeeper) {
            () async throws(CacheError) in
            let found = try await self.reading { () throws(CacheError) in try self.quietValues([key])[key] }
            return (found?.value, found?.row.version ?? RowVersion.none)
        }
        if !isCurrent { core.streamsToEnd()() }
        return stream
    }

    /// The number of readers of streams that wait.
    package var streamReaders: Int { copies.changes.streams.reduce(0) { $0 + $1.waitingCount } }

    /// A Boolean value that indicates whether the store is open and has the cache under this version.
    private var isCurrent: Bool {
        if manager.store.isClosed { return false }
        do throws(StoreError) { return try !rows.isSuperseded() } catch { return error.code != .closed }
    }

    /// Returns the values of those keys that have one, which does not count as access.
    private func quietValues(_ keys: [Key]) throws(CacheError) -> [Key: (value: Value, row: RowSummary)] {
        var wanted: [StoredKey: Key] = [:]
        for key in keys { wanted[try stored(key)] = key }
        let found = try throwing("read values") { () throws(StoreError) in
            try rows.requireCurrent()
            return try rows.rows(Array(wanted.keys))
        }
        let now = rows.store.time.now()
        var values: [Key: (value: Value, row: RowSummary)] = [:]
        for row in found where row.header.end >= now {
            if let key = wanted[row.header.key], let value = valueOrReported(of: row) {
                values[key] = (value, row.header.summary)
            }
        }
        return values
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

    /// A Boolean value that indicates whether the changes are too many to list, the cache was cleared or purged, another
    /// manager or process has committed something, or the manager was resumed.
    ///
    /// If it is true, ``updated`` and ``removed`` are empty. Read everything again.
    public let isReset: Bool

    package init(updated: [Key: Value], removed: Set<Key>, isReset: Bool) {
        self.updated = updated
        self.removed = removed
        self.isReset = isReset
    }
}

extension CacheChanges: Sendable where Key: Sendable, Value: Sendable {}
extension CacheChanges: Equatable where Value: Equatable {}
