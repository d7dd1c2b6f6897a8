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
