/// What a write touches: it waits for an `update` or a `transaction` that holds it.
@usableFromInline
package enum WriteScope: Sendable {
    /// Nothing that can be held: sub-caches being opened, rows being reclaimed.
    case unheld
    case key(HeldKey)
    case cache(ObjectIdentifier)
    /// Takes hold of what it names, until ``WriteQueue/release(_:)``.
    case holding(WriteHold)
}

/// A key of one sub-cache.
@usableFromInline
package struct HeldKey: Hashable, Sendable {
    package let cache: ObjectIdentifier
    package let key: StoredKey

    package init(_ cache: ObjectIdentifier, _ key: StoredKey) {
        self.cache = cache
        self.key = key
    }
}

/// What can be held against the writes of others.
@usableFromInline
package enum WriteHold: Hashable, Sendable {
    case key(HeldKey)
    case everything
}
