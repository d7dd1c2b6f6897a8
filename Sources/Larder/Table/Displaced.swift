/// The objects that a write replaced, kept until the lock is released: their release may run user code.
@usableFromInline
struct Displaced<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline var key: Key?
    @usableFromInline var value: Value?

    @inlinable
    init() {}

    @inlinable var isEmpty: Bool {
        if case .some = key { return false }
        if case .some = value { return false }
        return true
    }
}
