internal import Foundation

/// Values that are loaded by closures that return ``Generated``, and may say that there is none.
///
/// While a key is known to have no value, these calls read the disk, since another process may have written the key, and run
/// no closure. The calls whose closure returns a value run it.
extension Cache {
    /// Returns the value of a key, loaded by `generate` on this thread if there is none; nil if there is nothing to load.
    ///
    /// - Throws: What `generate` throws, or a ``CacheError`` if the value cannot be read or stored.
    @_disfavoredOverload
    public func value(forKey key: Key, generate: (Key) throws -> Generated<Value>) throws -> Value? {
        try values(forKeys: CollectionOfOne(key)) { _ in [key: try generate(key)] }[key]
    }

    /// Returns the value of a key, loaded by `generate` in a task of its own if there is none; nil if there is nothing to load.
    ///
    /// - Throws: What `generate` throws, `CancellationError`, or a ``CacheError`` if the value cannot be read or stored.
    @_disfavoredOverload
    public func value(
        forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Generated<Value>
    ) async throws -> Value? {
        try await loadedValues([key]) { _ in [key: LoadedValue(try await generate(key))] }[key]
    }

    /// Returns the value of a key, loaded by a closure that does not suspend if there is none; nil if there is nothing to load.
    @_disfavoredOverload
    public func value(
        forKey key: Key, generate: @escaping @Sendable (Key) throws -> Generated<Value>
    ) async throws -> Value? {
        try await loadedValues([key]) { _ in [key: LoadedValue(try generate(key))] }[key]
    }

    /// Returns the value of a key; if there is none, `generate` gets the old entry, expired or not, and returns what is now.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - generate: Gets the key and what is left of its entry; nil if nothing is, or it does not decode.
    /// - Returns: The value; nil if there is nothing to load.
    /// - Throws: What `generate` throws, `CancellationError`, or a ``CacheError`` if the value cannot be read or stored.
    public func value(
        forKey key: Key,
        generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> Value? {
        try await loadedValues([key]) { [self] _ in [key: try await withOld(key, generate)] }[key]
    }

    /// Returns the values of many keys; the missing ones are loaded by one call of `generate` on this thread.
    ///
    /// Keys that `generate` returns nothing for, or ``Generated/none(for:)``, stay without a value.
    @_disfavoredOverload
    public func values(
        forKeys keys: some Sequence<Key>, generate: ([Key]) throws -> [Key: Generated<Value>]
    ) throws -> [Key: Value] {
        var (known, rest) = try glance(keys)
        if rest.isEmpty { return known }
        if let found = try foundInside(rest) {
            for key in rest { _ = try present(found, key) }
            return known.merging(found.mapValues(\.value)) { $1 }
        }
        let absent = rest.filter(isKnownAbsent)
        if !absent.isEmpty { known.merge(try core.findEntries(absent, terms).mapValues(\.value)) { $1 } }
        let loaded = try load(rest.filter { !absent.contains($0) }, acceptsAbsence: true) {
            try generate($0).mapValues { LoadedValue($0) }
        }
        return known.merging(loaded.mapValues(\.value)) { $1 }
    }

    /// Returns the values of many keys; the missing ones are loaded by one call of `generate` in a task of its own.
    ///
    /// Keys that `generate` returns nothing for, or ``Generated/none(for:)``, stay without a value.
    @_disfavoredOverload
    public func values(
        forKeys keys: some Sequence<Key>, generate: @escaping @Sendable ([Key]) async throws -> [Key: Generated<Value>]
    ) async throws -> [Key: Value] {
        try await loadedValues(Array(keys)) { try await generate($0).mapValues { LoadedValue($0) } }
    }

    /// Returns the values of many keys; the missing ones are loaded by one call of a closure that does not suspend.
    @_disfavoredOverload
    public func values(
        forKeys keys: some Sequence<Key>, generate: @escaping @Sendable ([Key]) throws -> [Key: Generated<Value>]
    ) async throws -> [Key: Value] {
        try await loadedValues(Array(keys)) { try generate($0).mapValues { LoadedValue($0) } }
    }

    private func loadedValues(
        _ keys: [Key], _ generate: @escaping @Sendable ([Key]) async throws -> [Key: LoadedValue<Value>]
    ) async throws -> [Key: Value] {
        var (known, rest) = try glance(keys)
        let absent = rest.filter(isKnownAbsent)
        if !absent.isEmpty {
            known.merge(try await find(absent).mapValues(\.value)) { $1 }
            rest.removeAll(where: absent.contains)
        }
        if rest.isEmpty { return known }
        let loaded = try await load(rest, acceptsAbsence: true, generate)
        return known.merging(loaded.mapValues(\.value)) { $1 }
    }

    /// Returns the live entries of keys, which are read from disk.
    func find(_ keys: [Key]) async throws(CacheError) -> [Key: CacheEntry<Key, Value>] {
        try await offload { () throws(CacheError) in try self.core.findEntries(keys, self.terms) }
    }
}
