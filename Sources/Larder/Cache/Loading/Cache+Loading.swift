internal import Foundation

/// The path of every call that loads values.
extension Cache {
    /// The entries of keys: those that other calls load, and those that `generate` loads in a task of its own.
    ///
    /// - Parameter acceptsAbsence: Whether keys stay without an entry while they are known to have none.
    func load(
        _ keys: [Key], acceptsAbsence: Bool = false,
        _ generate: @escaping @Sendable ([Key]) async throws -> [Key: LoadedValue<Value>]
    ) async throws -> [Key: CacheEntry<Key, Value>] {
        try await core.loads.values(forKeys: keys, loadRules(acceptsAbsence)) {
            LoadPlan { [self] keys in
                try await offload { () throws(CacheError) in try self.core.findEntries(keys, self.terms) }
            } load: { [self] keys, permit in
                let loaded = try await generate(keys)
                return try await store(keys.compactMap { key in loaded[key].map { (key, $0) } }, permit)
            }
        }
    }

    /// The entries of keys: those that other calls load, and those that `generate` loads on this thread.
    ///
    /// - Parameter acceptsAbsence: Whether keys stay without an entry while they are known to have none.
    func load(
        _ keys: [Key], acceptsAbsence: Bool = false, _ generate: ([Key]) throws -> [Key: LoadedValue<Value>]
    ) throws -> [Key: CacheEntry<Key, Value>] {
        try core.loads.values(
            forKeys: keys, loadRules(acceptsAbsence), find: { try core.findEntries($0, terms) },
            load: { keys, permit in
                let loaded = try generate(keys)
                return try core.store(keys.compactMap { key in loaded[key].map { (key, $0) } }, permit, terms)
            })
    }

    /// Stores what was loaded, outside the pool of tasks.
    func store(
        _ loaded: [(key: Key, value: LoadedValue<Value>)], _ permit: LoadPermit<Key>
    ) async throws -> [Key: CacheEntry<Key, Value>] {
        // A codec may ask for what is being loaded, too.
        let chain = LoadChain.current
        return try await offload { () throws(any Error) in
            try LoadChain.$current.withValue(chain) { try self.core.store(loaded, permit, self.terms) }
        }
    }

    /// What this handle takes for an answer: no value that has expired by its own age, nor the failure of another manager.
    func loadRules(_ acceptsAbsence: Bool) -> LoadRules<Key, CacheEntry<Key, Value>> {
        var rules = LoadRules<Key, CacheEntry<Key, Value>>()
        rules.checkStoring = { [self] in try checkGenerating() }
        if acceptsAbsence { rules.isAbsent = { [self] in isKnownAbsent($0) } }
        let rule = terms.rule
        // A sliding age restarts when the value is found.
        if rule.isUnlimited || rule.isSliding { return rules }
        rules.now = { [terms] in terms.now() }
        rules.isExpired = { entry, now in
            if entry.metadata.isMade || entry.metadata.hasOwnAge { return false }
            let writtenAt = SystemClock.milliseconds(of: entry.metadata.writtenAt)
            return writtenAt < now && rule.isExpired(start: writtenAt, now: now)
        }
        return rules
    }

    /// Returns what a closure loads that gets the old entry.
    func withOld(
        _ key: Key, _ generate: @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> LoadedValue<Value> {
        let old = try await offload { () throws(CacheError) in try self.core.remains(of: key, self.terms) }
        return LoadedValue(try await generate(key, old?.entry), old: old?.draft)
    }

    func isKnownAbsent(_ key: Key) -> Bool { core.loads.isAbsent(key, now: terms.now()) }
}
