internal import Foundation

/// Values that are made when they are missing, once for everybody who asks.
///
/// Calls that miss the same key at once share one run of one generator: each gets its value, or its error, which is not
/// stored. What was set, updated, removed, cleared or purged while a generator ran is not overwritten by its result. A
/// generator may use the cache; waiting that would close a circle throws ``CacheError/Code/recursiveGeneration``. A circle
/// that runs through a detached task or another thread inside a generator cannot be seen: it waits until it is cancelled.
/// Sharing is within one process: in two, both may generate, and the later result stands.
extension Cache {
    /// The value of a key, made by `generate` on this thread if there is none.
    ///
    /// It waits for a generation of the same key that is underway; inside a task it does not wait for an asynchronous one,
    /// but runs its own closure, and what is stored first is everybody's. A thread that is no task, the main thread too,
    /// waits for either kind. If what it waits for needs the main actor, the main thread and it wait for each other for
    /// ever: use the asynchronous form there.
    ///
    /// - Throws: What `generate` throws, or a ``CacheError`` if the value cannot be read or stored.
    public func value(forKey key: Key, generate: (Key) throws -> Value) throws -> Value {
        if let value = try glance(key) { return value }
        if let found = try foundInside([key]) { return try present(found, key).value }
        return try load([key]) { _ in [key: LoadedValue(try generate(key))] }.one(key).value
    }

    /// The value of a key, made by `generate` in a task of its own if there is none.
    ///
    /// A cancelled caller throws `CancellationError` at once; the generation is cancelled when the last caller has left.
    ///
    /// A method of the main actor's that does not suspend cannot be given by its name: write a closure,
    /// `{ try await self.make($0) }`.
    public func value(
        forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        if let value = try glance(key) { return value }
        return try await load([key]) { _ in [key: LoadedValue(try await generate(key))] }.one(key).value
    }

    /// The value of a key, made by a closure that does not suspend; see the form for one that does.
    public func value(
        forKey key: Key, generate: @escaping @Sendable (Key) throws -> Value
    ) async throws -> Value {
        let generate: @Sendable (Key) async throws -> Value = { try generate($0) }
        return try await value(forKey: key, generate: generate)
    }

    /// The values of many keys; those that are missing are made by one call of `generate` on this thread.
    ///
    /// Keys that `generate` gives no value for stay without one.
    public func values(
        forKeys keys: some Sequence<Key>, generate: ([Key]) throws -> [Key: Value]
    ) throws -> [Key: Value] {
        let (known, rest) = try glance(keys)
        if rest.isEmpty { return known }
        if let found = try foundInside(rest) {
            for key in rest { _ = try present(found, key) }
            return known.merging(found.mapValues(\.value)) { $1 }
        }
        let loaded = try load(rest) { try generate($0).mapValues { LoadedValue($0) } }
        return known.merging(loaded.mapValues(\.value)) { $1 }
    }

    /// The values of many keys; those that are missing are made by one call of `generate` in a task of its own.
    ///
    /// Keys that `generate` gives no value for stay without one.
    public func values(
        forKeys keys: some Sequence<Key>, generate: @escaping @Sendable ([Key]) async throws -> [Key: Value]
    ) async throws -> [Key: Value] {
        let (known, rest) = try glance(keys)
        if rest.isEmpty { return known }
        let loaded = try await load(rest) { try await generate($0).mapValues { LoadedValue($0) } }
        return known.merging(loaded.mapValues(\.value)) { $1 }
    }

    /// The values of many keys, made by a closure that does not suspend; see the form for one that does.
    public func values(
        forKeys keys: some Sequence<Key>, generate: @escaping @Sendable ([Key]) throws -> [Key: Value]
    ) async throws -> [Key: Value] {
        let generate: @Sendable ([Key]) async throws -> [Key: Value] = { try generate($0) }
        return try await values(forKeys: keys, generate: generate)
    }

    /// The entry of a key; if there is none, `generate` gets what was there before, over or not, and says what is now.
    ///
    /// That serves conditional requests: keep an ETag as extended data, send it, and give ``Generated/notModified`` where
    /// the server has nothing newer.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - generate: Gets the key and what is left of its entry; nil if nothing is, or it does not decode.
    public func entry(
        forKey key: Key,
        generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> CacheEntry<Key, Value> {
        _ = try manager.store()
        let entry = try await load([key]) { [self] _ in
            let loaded = try await withOld(key, generate)
            guard case .none = loaded.generated.outcome else { return [key: loaded] }
            throw CacheError(
                .invalidConfiguration,
                "The generator for key \(key) of cache \"\(name)\" said that there is no value, but its call returns an"
                    + " entry. Call value(forKey:generate:) instead.")
        }.one(key)
        return entry.seen(by: terms.rule)
    }

    // MARK: - What they need

    /// What memory knows, without the disk.
    func glance(_ key: Key) throws(CacheError) -> Value? {
        if let value = hit(key) { return value }
        _ = try manager.store()
        return core.glance(key, terms)
    }

    func glance(_ keys: some Sequence<Key>) throws(CacheError) -> (known: [Key: Value], rest: [Key]) {
        // Also where no key is asked for.
        _ = try manager.store()
        var known: [Key: Value] = [:]
        var rest: [Key] = []
        for key in keys where known[key] == nil {
            if let value = try glance(key) { known[key] = value } else { rest.append(key) }
        }
        return (known, rest)
    }

    /// What is there already, for a thread inside a transaction or an update: it may not wait for other loads, which may
    /// be waiting for it, and may not store.
    func foundInside(_ keys: [Key]) throws(CacheError) -> [Key: CacheEntry<Key, Value>]? {
        guard ledger.store.inside.containCurrent else { return nil }
        return try core.findEntries(keys, terms)
    }

    func present(
        _ found: [Key: CacheEntry<Key, Value>], _ key: Key
    ) throws(CacheError) -> CacheEntry<Key, Value> {
        if let entry = found[key] { return entry }
        try ledger.store.inside.refuseCurrent("generate a value")
        throw ledger.supersededError
    }

    /// Throws where what is made could not be stored.
    func checkGenerating() throws(CacheError) {
        try checkWritable("generate a value")
        if ledger.isSuperseded { throw ledger.supersededError }
    }
}

extension Dictionary {
    /// The value of a key that a load cannot leave without one.
    func one(_ key: Key) -> Value {
        guard let value = self[key] else { preconditionFailure("A load of one value returns it.") }
        return value
    }
}

// MARK: - Inspection

extension Cache {
    /// How many callers wait for values that are being made.
    package var waitingCallers: Int { core.loads.waitingCount }

    /// Whether any value is being made.
    package var isGenerating: Bool { !core.loads.isIdle }
}
