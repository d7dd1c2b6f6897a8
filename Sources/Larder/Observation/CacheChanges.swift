/// What changed in a cache during an interval: the net of it, so that no key is both updated and removed.
public struct CacheChanges<Key: Hashable, Value> {
    /// The keys that were set, with the values they have as the batch is taken.
    public let updated: [Key: Value]

    /// The keys whose entries have gone, by removal, expiry or eviction.
    public let removed: Set<Key>

    /// Whether more changed than is listed, so that all has to be read again; the other two are empty then.
    public let isReset: Bool

    package init(updated: [Key: Value], removed: Set<Key>, isReset: Bool) {
        self.updated = updated
        self.removed = removed
        self.isReset = isReset
    }
}

extension CacheChanges: Sendable where Key: Sendable, Value: Sendable {}
extension CacheChanges: Equatable where Value: Equatable {}
