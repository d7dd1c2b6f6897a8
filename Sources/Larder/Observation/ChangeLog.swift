/// The change of a key.
///
/// It is outside of `ChangeLog`, because a type inside a generic one is generic too, which makes a write slower.
package enum KeyChange: Sendable {
    case updated, removed
}

/// The net changes of an interval: keys only, and a bounded number of them.
package struct ChangeLog<Key: Hashable & Sendable>: Sendable {
    /// The keys that a reset has dropped, for the caller to release while no lock is held.
    package typealias Dropped = [Key: KeyChange]

    /// The maximum number of keys: beyond it, reading everything again costs no more than a list.
    package static var capacity: Int { 10_000 }

    private var pending: [Key: KeyChange] = [:]
    private var isReset = false

    package init() {}

    /// A Boolean value that indicates whether nothing changed since the last batch was taken.
    package var isEmpty: Bool { pending.isEmpty && !isReset }

    /// The number of keys that are held.
    package var count: Int { pending.count }

    /// Notes that the key has a new or another value, or that its entry was removed.
    ///
    /// The last change of a key counts: the reader of the batch sees the state after it, and no intermediate one.
    package mutating func note(_ key: Key, _ change: KeyChange) -> Dropped? {
        if isReset { return nil }
        pending.updateValue(change, forKey: key)
        return pending.count > Self.capacity ? reset() : nil
    }

    /// Notes that everything may have changed.
    package mutating func reset() -> Dropped {
        isReset = true
        defer { pending = [:] }
        return pending
    }

    /// Returns the net changes since the last batch, or nil if there were none.
    package mutating func take() -> (updated: Set<Key>, removed: Set<Key>, isReset: Bool)? {
        if isEmpty { return nil }
        defer {
            pending = [:]
            isReset = false
        }
        var batch = (updated: Set<Key>(), removed: Set<Key>(), isReset: isReset)
        for (key, change) in pending {
            if change == .updated { batch.updated.insert(key) } else { batch.removed.insert(key) }
        }
        return batch
    }
}
