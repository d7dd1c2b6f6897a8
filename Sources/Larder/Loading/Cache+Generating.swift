internal import LarderStore

/// Values that are loaded if they are missing, once for all callers that ask at the same time.
///
/// Calls that miss a key while a load of it runs share this load: each gets its value, or its error, which is not stored. A
/// load does not overwrite a key that is set, updated, removed, cleared or purged in the meantime; the callers of the load
/// get its value all the same. If a value cannot be stored, an event reports it.
///
/// A closure may use the cache. If it asks, itself or through the loads that it begins, for a key that it is loading, that call
/// throws ``CacheError/Code/recursiveGeneration``. Loads of unrelated tasks that wait for each other are not found: their
/// callers, and later ones, wait until they are cancelled.
///
/// Loads are shared within a manager. A late result may overwrite what another process has set in the meantime.
extension Cache {
    /// Returns the value of a key; if there is none, `generate` loads it on this thread.
    ///
    /// The call waits for a synchronous load of another thread, but not for an asynchronous one, and for none from inside a
    /// load: it runs its own closure then, and what is stored first stays. Inside a body of a transaction it loads nothing, and
    /// throws `.reentrant` if there is no value.
    ///
    /// - Throws: A load error, see ``CacheError``.
    @_disfavoredOverload
    @inlinable
    public func value(forKey key: Key, generate: (Key) throws -> Value) throws -> Value {
        if let value = hit(key) { return value }
        return try loadedValue(key, generate)
    }

    /// Returns the value of a key; if there is none, `generate` loads it in a task of its own.
    ///
    /// A caller that is cancelled throws `CancellationError` at once. The task is cancelled when the last caller has left.
    ///
    /// - Throws: A load error, see ``CacheError``.
    @inlinable
    public func value(
        forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        if let value = hit(key) { return value }
        return try await loadedValue(key, generate)
    }

    /// Returns the values of many keys; one call of `generate` on this thread loads those that are missing.
    ///
    /// Keys that `generate` returns nothing for stay without a value.
    ///
    /// - Throws: A load error, see ``CacheError``.
    @_disfavoredOverload
    public func values(
        forKeys keys: some Sequence<Key>, generate: ([Key]) throws -> [Key: Value]
    ) throws -> [Key: Value] {
        let (known, rest) = try valueInMemory(keys)
        let loaded = try load(rest, needsValue: false) {
            try generate($0.missing.map { $0.key }).mapValues { .value($0) }
        }
        return rest.reduce(into: known) { $0[$1.key] = loaded[$1.stored]?.value }
    }

    /// Returns the values of many keys; one call of `generate` in a task of its own loads those that are missing.
    ///
    /// Keys that `generate` returns nothing for stay without a value.
    ///
    /// - Throws: A load error, see ``CacheError``.
    public func values(
        forKeys keys: some Sequence<Key>, generate: @escaping @Sendable ([Key]) async throws -> [Key: Value]
    ) async throws -> [Key: Value] {
        let (known, rest) = try valueInMemory(keys)
        let loaded = try await load(rest, needsValue: false) {
            try await generate($0.missing.map { $0.key }).mapValues { .value($0) }
        }
        return rest.reduce(into: known) { $0[$1.key] = loaded[$1.stored]?.value }
    }

    /// Returns the entry of a key; if there is none, `generate` gets the expired one and returns a new one.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - generate: Gets the key and its expired entry; nil if nothing is left of it, or it does not decode.
    /// - Throws: A load error, see ``CacheError``. `.invalidConfiguration` if `generate` returns
    ///   ``Generated/none(for:)``.
    @_disfavoredOverload
    public func entry(
        forKey key: Key, generate: (Key, CacheEntry<Key, Value>?) throws -> Generated<Value>
    ) throws -> CacheEntry<Key, Value> {
        try one(key, loadedEntry(key, generate))
    }

    /// Returns the entry of a key; if there is none, `generate` gets the expired one and returns a new one.
    ///
    /// This serves conditional requests: keep an ETag as extended data, send it, and return ``Generated/notModified`` if the
    /// server has nothing newer.
    ///
    /// - Throws: A load error, see ``CacheError``. `.invalidConfiguration` if `generate` returns
    ///   ``Generated/none(for:)``.
    public func entry(
        forKey key: Key,
        generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> CacheEntry<Key, Value> { try await one(key, loadedEntry(key, generate)) }

    /// Returns the value of a key; if there is none, `generate` gets the expired entry and returns a new value.
    ///
    /// It runs on this thread.
    ///
    /// - Returns: The value; nil if `generate` returns ``Generated/none(for:)``, or has done so before and that holds.
    /// - Throws: A load error, see ``CacheError``.
    @_disfavoredOverload
    public func value(
        forKey key: Key, generate: (Key, CacheEntry<Key, Value>?) throws -> Generated<Value>
    ) throws -> Value? {
        if let value = valueInMemory(key) { return value }
        return try loadedEntry(key, acceptsAbsence: true, generate)?.value
    }

    /// Returns the value of a key; if there is none, `generate` gets the expired entry and returns a new value.
    ///
    /// - Returns: The value; nil if `generate` returns ``Generated/none(for:)``, or has done so before and that holds.
    /// - Throws: A load error, see ``CacheError``.
    public func value(
        forKey key: Key,
        generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> Value? {
        if let value = valueInMemory(key) { return value }
        return try await loadedEntry(key, acceptsAbsence: true, generate)?.value
    }

    // MARK: Parts

    @usableFromInline
    func loadedValue(_ key: Key, _ generate: (Key) throws -> Value) throws -> Value {
        if let value = valueInMemory(key) { return value }
        return try one(key, loadedEntry(key) { key, _ in .value(try generate(key)) }).value
    }

    @usableFromInline
    func loadedValue(_ key: Key, _ generate: @escaping @Sendable (Key) async throws -> Value) async throws -> Value {
        if let value = valueInMemory(key) { return value }
        return try await one(key, loadedEntry(key) { key, _ in .value(try await generate(key)) }).value
    }

    private func loadedEntry(
        _ key: Key, acceptsAbsence: Bool = false, _ generate: (Key, Entry?) throws -> Generated<Value>
    ) throws -> Entry? {
        let stored = try stored(key)
        // Another process may have written a key that is known to be absent.
        if acceptsAbsence, isAbsent(stored) { return try entry(forKey: key) }
        return try load([(key, stored)], needsValue: !acceptsAbsence) {
            [key: try generate(key, $0.old[stored]?.entry)]
        }[stored]
    }

    func loadedEntry(
        _ key: Key, acceptsAbsence: Bool = false,
        _ generate: @escaping @Sendable (Key, Entry?) async throws -> Generated<Value>
    ) async throws -> Entry? {
        let stored = try stored(key)
        if acceptsAbsence, isAbsent(stored) { return try await entry(forKey: key) }
        return try await load([(key, stored)], needsValue: !acceptsAbsence) {
            [key: try await generate(key, $0.old[stored]?.entry)]
        }[stored]
    }

    /// Returns the result of a call that needs one.
    func one<R>(_ key: Key, _ result: R?) throws(CacheError) -> R {
        if let result { return result }
        throw CacheError(
            .invalidConfiguration,
            "The closure that loads key \(key) of cache \"\(name)\" has returned .none, but the call returns an entry. Call"
                + " value(forKey:generate:) instead.")
    }

    private func valueInMemory(_ keys: some Sequence<Key>) throws(CacheError) -> (known: [Key: Value], rest: [LoadItem])
    {
        var (known, rest, seen) = ([Key: Value](), [LoadItem](), Set<StoredKey>())
        for key in keys where known[key] == nil {
            known[key] = valueInMemory(key)
            if known[key] != nil { continue }
            let stored = try stored(key)
            if seen.insert(stored).inserted { rest.append((key, stored)) }
        }
        if rest.isEmpty && rows.store.isClosed { throw CacheError(StoreError.closed, "load values", cache: name) }
        return (known, rest)
    }

    /// The number of callers that wait for loads.
    package var waitingCallers: Int { loads.waitingCount }

    /// A Boolean value that indicates whether any load runs.
    package var isGenerating: Bool { !loads.isIdle }
}
