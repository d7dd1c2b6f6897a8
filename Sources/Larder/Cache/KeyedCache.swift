/// What a ``MemoryCache``, a ``Cache`` and your own type for tests have in common.
///
/// Code that takes `some KeyedCache<Key, Value>` runs over each of them. A type of your own conforms with a dictionary behind a
/// lock, in twenty lines.
public protocol KeyedCache<Key, Value>: Sendable {
    associatedtype Key: Hashable & Sendable
    associatedtype Value: Sendable

    /// The value of a key; setting nil removes it. What fails gives nil, or does nothing.
    subscript(key: Key) -> Value? { get nonmutating set }

    /// Returns the value of a key; nil if there is none.
    func value(forKey key: Key) throws -> Value?

    /// Sets the value of a key; nil removes it.
    func setValue(_ value: Value?, forKey key: Key) throws

    /// Removes a key, and returns its value.
    @discardableResult
    func removeValue(forKey key: Key) throws -> Value?

    /// Removes all keys.
    func removeAll() throws

    /// Returns the value of a key; if there is none, `generate` loads it, once for all callers at the same time.
    func value(forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value) async throws -> Value
}

extension MemoryCache: KeyedCache {
    /// Sets the value of a key, with the cost 0.
    @_disfavoredOverload
    @inlinable
    public func setValue(_ value: Value?, forKey key: Key) { setValue(value, forKey: key, cost: 0) }
}

extension Cache: KeyedCache {
    /// Sets the value of a key, without anything else.
    @_disfavoredOverload
    public func setValue(_ value: Value?, forKey key: Key) throws {
        try setValue(value, forKey: key, cost: nil)
    }

    /// Removes all entries.
    @_disfavoredOverload
    public func removeAll() throws {
        let _: Int = try removeAll()
    }
}
