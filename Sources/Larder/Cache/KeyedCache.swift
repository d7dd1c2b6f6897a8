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

    /// Returns whether a key has a value.
    func contains(_ key: Key) async throws -> Bool

    /// Returns the value of a key; if there is none, `generate` loads it, once for all callers at the same time.
    func value(forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value) async throws -> Value
}

extension KeyedCache {
    /// Returns whether a key has a value, by reading it.
    public func contains(_ key: Key) async throws -> Bool { try value(forKey: key) != nil }
}

/// What the caches have in common that a task may have to wait for: a ``MemoryCache``, a ``Cache``, and one that nodes share.
///
/// Code that takes `some AsyncKeyedCache<Key, Value>` runs over each of them, so an app can share its cache later.
public protocol AsyncKeyedCache<Key, Value>: Sendable {
    associatedtype Key: Hashable & Sendable
    associatedtype Value: Sendable

    /// Returns the value of a key; nil if there is none.
    func value(forKey key: Key) async throws -> Value?

    /// Returns whether a key has a value.
    func contains(_ key: Key) async throws -> Bool

    /// Sets the value of a key; nil removes it.
    func setValue(_ value: Value?, forKey key: Key) async throws

    /// Removes all keys.
    func removeAll() async throws

    /// Returns the value of a key; if there is none, `generate` loads it, once for all callers at the same time.
    func value(forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value) async throws -> Value
}

extension MemoryCache: KeyedCache, AsyncKeyedCache {
    /// Sets the value of a key, with the cost 0.
    @_disfavoredOverload
    @inlinable
    public func setValue(_ value: Value?, forKey key: Key) { setValue(value, forKey: key, cost: 0) }
}

extension DiskTier: KeyedCache {
    /// Removes a key, and returns its value.
    @discardableResult
    public func removeValue(forKey key: Key) throws -> Value? { try cache.removeValue(forKey: key) }

    /// Returns the value on the disk; if there is none, `generate` loads it as for the cache, which keeps a copy in memory.
    public func value(
        forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        if let value = try await value(forKey: key) { return value }
        return try await cache.value(forKey: key, generate: generate)
    }

    /// Removes all entries, in both tiers.
    @_disfavoredOverload
    public func removeAll() throws { let _: Int = try cache.removeAll() }
}

extension Cache: KeyedCache, AsyncKeyedCache {
    /// Sets the value of a key, without anything else.
    @_disfavoredOverload
    public func setValue(_ value: Value?, forKey key: Key) throws {
        try setValue(value, forKey: key, cost: nil)
    }

    /// Sets the value of a key, without anything else.
    @_disfavoredOverload
    public func setValue(_ value: Value?, forKey key: Key) async throws {
        try await setValue(value, forKey: key, cost: nil)
    }

    /// Removes all entries.
    @_disfavoredOverload
    public func removeAll() throws {
        let _: Int = try removeAll()
    }

    /// Removes all entries.
    @_disfavoredOverload
    public func removeAll() async throws {
        let _: Int = try await removeAll()
    }
}
