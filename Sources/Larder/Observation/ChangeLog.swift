/// What became of a key.
///
/// Outside `ChangeLog`, for a type inside a generic one is generic too, and that shows in the cost of a write.
package enum KeyChange: Sendable {
    case updated, removed
}

/// The net of what changed in an interval: keys only, and a bounded number of them.
package struct ChangeLog<Key: Hashable & Sendable>: Sendable {
    /// What a reset has dropped, for the caller to release where no lock is held.
    package typealias Dropped = [Key: KeyChange]

    /// Beyond so many keys, reading all again is no dearer than a list of them.
    package static var capacity: Int { 10_000 }

    private var pending: [Key: KeyChange] = [:]
    private var isReset = false

    package init() {}

    /// Whether nothing changed since the last batch was taken.
    package var isEmpty: Bool { pending.isEmpty && !isReset }

    /// How many keys are held.
    package var count: Int { pending.count }

    /// Notes that the key has a value, a new one or another, or that its entry, one that was there, has gone.
    ///
    /// The last change of a key decides: whoever takes the batch sees the state behind it, and no step on the way.
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

    /// The net of the changes since the last batch, or nil if there were none.
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
