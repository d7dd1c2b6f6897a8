/// A cache and a closure that loads what is missing in it, as one callable value; see `Cache.generator(_:_:)`.
///
/// ```swift
/// let article = articles.generator { id in try await api.article(id) }
/// let first = try await article(1)
/// ```
public struct ValueGenerator<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    let load: @Sendable (Key) async throws -> Value

    package init(load: @escaping @Sendable (Key) async throws -> Value) { self.load = load }

    /// Returns the value of a key: the stored one, a stale one as the policy allows, or one that is loaded now.
    ///
    /// - Throws: A load error, see ``CacheError``.
    public func callAsFunction(_ key: Key) async throws -> Value { try await load(key) }
}

extension Cache {
    /// Returns a callable value that reads this cache and loads what is missing.
    ///
    /// Sweeps leave what it may still serve stale: all generators of a cache, and ``CacheOptions/keepsExpired``, name the
    /// longest time together. `removeExpired()`, trims and limits make no such exception. The call never waits: the time is
    /// declared in the background.
    public func generator(
        _ policy: GenerationPolicy = .init(), _ generate: @escaping @Sendable (Key) async throws -> Value
    ) -> ValueGenerator<Key, Value> {
        let load = generator(policy, acceptsAbsence: false) { key, _ in .value(try await generate(key)) }
        return ValueGenerator { try await self.one($0, load($0)) }
    }

    func generator(
        _ policy: GenerationPolicy, acceptsAbsence: Bool,
        _ generate: @escaping @Sendable (Key, Entry?) async throws -> Generated<Value>
    ) -> ValueGenerator<Key, Value?> {
        let loader = PolicyLoader(self, policy, acceptsAbsence: acceptsAbsence, StaleWindow()) {
            [try await generate($0[0].key, $0[0].entry)]
        }
        return ValueGenerator { try await loader.value($0) }
    }

    /// Returns a callable value that reads this cache and loads what is missing, with the old entry in hand.
    ///
    /// Together with ``GenerationPolicy/staleFor`` that makes conditional requests in the background: keep an ETag as extended
    /// data, send it, and return ``Generated/notModified`` if the server has nothing newer.
    ///
    /// - Parameters:
    ///   - policy: The treatment of expired values.
    ///   - generate: Gets the key and its entry, which may have expired; nil if there is none. If it returns
    ///     ``Generated/none(for:)``, callers get nil.
    public func generator(
        _ policy: GenerationPolicy = .init(),
        _ generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) -> ValueGenerator<Key, Value?> {
        generator(policy, acceptsAbsence: true, generate)
    }
}
