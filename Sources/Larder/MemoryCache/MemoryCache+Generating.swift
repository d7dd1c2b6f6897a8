internal import LarderLocks
internal import LarderStore

/// Values that are loaded as a policy says.
extension MemoryCache {
    /// Returns a callable value that reads this cache and loads what is missing.
    ///
    /// Reads and timers leave an expired entry as long as the policy of any generator of the cache may serve it stale;
    /// ``removeExpired()``, trims and limits make no such exception. A refresh in the background that fails is an event of the
    /// kind ``CacheEvent/Kind/refreshFailed``.
    public func generator(
        _ policy: GenerationPolicy = .init(), _ generate: @escaping @Sendable (Key) async throws -> Value
    ) -> ValueGenerator<Key, Value> {
        let loader = MemoryPolicyLoader(self, policy, acceptsAbsence: false) {
            [.value(try await generate($0[0].key))]
        }
        return ValueGenerator { [self] in try one([try await loader.value($0)]) }
    }

    /// Returns a callable value that reads this cache and loads what is missing, with the old entry in hand.
    ///
    /// A closure that returns extended data or tags, which a memory cache does not keep, makes its callers throw
    /// ``CacheError/Code/invalidConfiguration``.
    ///
    /// - Parameters:
    ///   - policy: The treatment of expired values.
    ///   - generate: Gets the key and its entry, which has expired or is due; nil if there is none. An expired one is there as long as a
    ///     policy may serve it. Its metadata has a cost, an end and, if it has an end, the moment of the write.
    public func generator(
        _ policy: GenerationPolicy = .init(),
        _ generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) -> ValueGenerator<Key, Value?> {
        let loader = MemoryPolicyLoader(self, policy, acceptsAbsence: true) {
            [try await generate($0[0].key, $0[0].entry)]
        }
        return ValueGenerator { try await loader.value($0) }
    }

    /// Returns a callable value whose calls for single keys become calls for many.
    ///
    /// The keys that are missing within a short time are loaded by one call of `load`, and kept each for itself. A call of `load` that
    /// throws does so for the callers of its keys. Keys that it returns nothing for have no value.
    ///
    /// > Warning: `load` must not ask for a value whose own load uses this loader. Two callers can then wait for each other forever, unless
    /// the policy has a timeout.
    ///
    /// - Parameters:
    ///   - policy: The treatment of expired values; refreshes are gathered too.
    ///   - window: The time from the first key to the call of `load`.
    ///   - limit: The number of keys with which `load` is called at once.
    ///   - load: Gets keys, each once, in the order in which they were asked for.
    public func batching(
        _ policy: GenerationPolicy = .init(), window: Duration = .milliseconds(2), limit: Int = 100,
        _ load: @escaping @Sendable ([Key]) async throws -> [Key: Generated<Value>]
    ) -> ValueGenerator<Key, Value?> {
        let batch = BatchLoader(window: window, limit: limit, timekeeper, load)
        return generator(policy) { [self] key, _ in
            try batch.check(name)
            return try await batch.value(key) ?? .none(for: .seconds(0))
        }
    }

    /// Returns the values of many keys as a policy says; one call of `generate` in a task of its own loads those that are missing.
    ///
    /// It is the same as that of a ``Cache``, without extended data and tags.
    ///
    /// - Parameters:
    ///   - keys: The keys.
    ///   - policy: The treatment of expired values.
    ///   - generate: Gets the keys to load, and the entries that there are of them, as in `generator(_:_:)`. Returns
    ///     ``Generated/none(for:)`` for a key that has no value, and nothing for a key of which it does not know.
    /// - Returns: The values of the keys that have one.
    /// - Throws: What `generate` throws, `CancellationError`, `.recursiveGeneration`, or `.timedOut`.
    public func values(
        forKeys keys: some Sequence<Key>, policy: GenerationPolicy = .init(),
        generate: @escaping @Sendable ([Key], [Key: CacheEntry<Key, Value>]) async throws -> [Key: Generated<Value>]
    ) async throws -> [Key: Value] {
        let loader = MemoryPolicyLoader(self, policy, acceptsAbsence: true) { rows in
            let made = try await generate(rows.map { $0.key }, rows.reduce(into: [:]) { $0[$1.key] = $1.entry })
            return rows.map { made[$0.key] }
        }
        return try await loader.values(keys)
    }

    /// Lets expired entries stay as long as a policy may serve them.
    fileprivate func keepExpired(_ policy: GenerationPolicy) {
        let stale = policy.longestStale
        while case let old = staleTime.load(ordering: .relaxed), old < stale,
            !staleTime.compareExchange(expected: old, desired: stale, ordering: .relaxed).exchanged
        {}
    }

    /// Returns whether a value is due to be loaded again.
    fileprivate func isDue(_ key: Key, _ rule: RefreshRule) -> Bool {
        let hash = seed.hash(key)
        let times = state.withLock { state in
            let found = state.table.locate(key, hash: hash)
            return found == 0 ? nil : state.refreshTimes(at: found)
        }
        return times.map { rule.isDue($0, at: moment()) } ?? false
    }

    /// Returns the values of keys that there are, expired no longer ago than some time, in their order.
    fileprivate func stale(_ keys: [Key], for time: Duration) -> [Value?] {
        let (wanted, moment) = (keys.map { (key: $0, hash: seed.hash($0)) }, now())
        let milliseconds = GenerationPolicy.milliseconds(time)
        return state.withLock { state in
            wanted.map { key, hash in
                let found = state.table.locate(key, hash: hash)
                let isStale = found != 0 && state.isExpired(found, now: moment)
                if found == 0 || isStale && milliseconds == 0 { return nil }
                if state.isExpired(found, now: moment.subtractingSaturated(milliseconds)) { return nil }
                return state.table.value(at: found)
            }
        }
    }
}

extension MemoryCache.LoadRow {
    /// What the closure of a program gets of the old value; nil if there is none.
    var entry: CacheEntry<Key, Value>? {
        guard let old else { return nil }
        let (end, moment) = (old.times.end, old.times.hint.moment)
        let writtenAt = end == .max ? 0 : end.subtractingSaturated(old.times.age)
        let metadata = EntryMetadata(
            writtenAt: SystemClock.date(of: writtenAt), expiresAt: end == .max ? nil : SystemClock.date(of: end),
            cost: old.cost, refreshesAt: moment == .max ? nil : SystemClock.date(of: moment))
        return CacheEntry(key: key, value: old.value, metadata: metadata, isExpired: old.isExpired)
    }
}

/// Loads the values of a memory cache as a policy says.
private struct MemoryPolicyLoader<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let cache: MemoryCache<Key, Value>
    private let policy: GenerationPolicy
    /// A Boolean value that indicates whether callers take it for an answer that there is no value.
    private let acceptsAbsence: Bool
    private let make: MemoryCache<Key, Value>.Make

    init(
        _ cache: MemoryCache<Key, Value>, _ policy: GenerationPolicy, acceptsAbsence: Bool,
        _ make: @escaping MemoryCache<Key, Value>.Make
    ) {
        (self.cache, self.policy, self.acceptsAbsence) = (cache, policy, acceptsAbsence)
        self.make = policy.noting({ [timekeeper = cache.timekeeper] in timekeeper.nanoseconds() }, make)
        cache.keepExpired(policy)
    }

    func value(_ key: Key) async throws -> Value? {
        try policy.check(cache.name)
        let rule = RefreshRule(policy.refreshAhead)
        // Before the read, which moves the end of an entry that slides.
        let isDue = cache.isDue(key, rule)
        if let value = cache.value(forKey: key) {
            if isDue { refresh([key], rule) }
            return value
        }
        return try await found([key], rule)[0]
    }

    func values(_ keys: some Sequence<Key>) async throws -> [Key: Value] {
        try policy.check(cache.name)
        let rule = RefreshRule(policy.refreshAhead)
        var (known, due, rest, seen) = ([Key: Value](), [Key](), [Key](), Set<Key>())
        for key in keys where seen.insert(key).inserted {
            let isDue = cache.isDue(key, rule)
            known[key] = cache.value(forKey: key)
            if known[key] == nil { rest.append(key) } else if isDue { due.append(key) }
        }
        if rest.isEmpty {
            refresh(due, rule)
            return known
        }
        return zip(rest, try await found(rest, rule, due)).reduce(into: known) { $0[$1.0] = $1.1 }
    }

    /// Returns the values of keys that have none which has not expired, in their order.
    ///
    /// - Parameter due: Keys whose values have not expired, and are due.
    private func found(_ keys: [Key], _ rule: RefreshRule, _ due: [Key] = []) async throws -> [Value?] {
        var values = policy.staleFor > .zero ? cache.stale(keys, for: policy.staleFor) : keys.map { _ in nil }
        let stale = keys.indices.filter { values[$0] != nil }
        countStale(stale.count)
        refresh(due + stale.map { keys[$0] }, rule)
        var missing = keys.indices.filter { values[$0] == nil }
        if acceptsAbsence {
            let now = cache.moment()
            missing.removeAll { cache.loads.isAbsent(keys[$0], at: now) }
        }
        if missing.isEmpty { return values }
        let rest = missing.map { keys[$0] }
        for (place, value) in zip(missing, try await loadedOrStale(rest)) { values[place] = value }
        return values
    }

    /// Loads values; if that fails, returns the old ones if all may be served.
    private func loadedOrStale(_ keys: [Key]) async throws -> [Value?] {
        do {
            let hasOld = staleValues(keys, for: policy.staleWhenLate) != nil
            return try await loaded(keys, hasOld: hasOld)
        } catch {
            let isOwnFault = (error as? CacheError)?.code == .recursiveGeneration || Task.isCancelled
            // Looked up again: one may have been removed in the meantime.
            guard !isOwnFault, let values = staleValues(keys, for: policy.staleOnError) else { throw error }
            countStale(values.count)
            for key in keys { cache.reportFailedRefresh(key, error) }
            return values
        }
    }

    /// Loads values; if that takes long, returns the old ones, and the load goes on.
    private func loaded(_ keys: [Key], hasOld: Bool) async throws -> [Value?] {
        let (limits, make) = (limits(of: keys, hasOld: hasOld), make)
        var values: [Value?] = try await cache.loads.load(
            keys, needsValue: !acceptsAbsence, within: limits
        ) { [cache] in await cache.lead($0, keys, nil, make) }
        let late = limits?.late ?? []
        if late.isEmpty { return values }
        let rest = late.map { keys[$0] }
        var old: [Value?]? = staleValues(rest, for: policy.staleWhenLate)
        if old != nil { countStale(rest.count) }
        // One was removed in the meantime.
        if old == nil { old = try await loaded(rest, hasOld: false) }
        for (place, value) in zip(late, old ?? []) { values[place] = value }
        return values
    }

    /// Returns old values; nil unless all may be served.
    private func staleValues(_ keys: [Key], for time: Duration) -> [Value]? {
        if time <= .zero { return nil }
        let values = cache.stale(keys, for: time).compactMap { $0 }
        return values.count == keys.count ? values : nil
    }

    private func countStale(_ count: Int) {
        if count > 0 { cache.state.withLock { $0.counts.staleHits += count } }
    }

    private func limits(of keys: [Key], hasOld: Bool) -> LoadLimits? {
        policy.limits(hasOld: hasOld, cache.timekeeper) { [cache, policy] in
            let others = keys.count == 1 ? "" : " and \(keys.count - 1) more"
            return CacheError.timedOut(policy, "Key \"\(keys[0])\"\(others) of \(cache.described)")
        } failed: { [cache] error, places in
            for place in places { cache.reportFailedRefresh(keys[place], error) }
        }
    }

    /// Begins to load values in the background, those of which no load runs.
    private func refresh(_ keys: [Key], _ rule: RefreshRule) {
        if keys.isEmpty { return }
        let (cache, make) = (cache, make)
        cache.loads.loadInBackground(keys, within: limits(of: keys, hasOld: false)) {
            await cache.lead($0, keys, rule, make)
        } failed: { error, places in
            for place in places { cache.reportFailedRefresh(keys[place], error) }
        }
    }
}

extension MemoryCache {
    fileprivate func reportFailedRefresh(_ key: Key, _ error: any Error) {
        let message = "The value for key \"\(key)\" of \(described) could not be refreshed: \(error)"
        report(.refreshFailed, message, .error, error as? CacheError, key: "\(key)")
    }
}
