internal import LarderLocks
internal import LarderStore

/// Values that are loaded if they are missing, once for all callers that ask at the same time.
///
/// Calls that miss a key while a load of it runs share this load: each gets its value, or its error, which is not stored. A
/// load does not overwrite a key that is set, updated or removed in the meantime; the callers of the load get its value all the
/// same. Loaded values have the cost 0 and the age of the cache.
///
/// A closure may use the cache. If it asks, itself or through the loads that it begins, for a key that it is loading, that call
/// throws ``CacheError/Code/recursiveGeneration``.
extension MemoryCache {
    /// Returns the value of a key; if there is none, `generate` loads it on this thread.
    ///
    /// The call waits for a synchronous load of another thread, but not for an asynchronous one, and for none from inside a
    /// load: it runs its own closure then, and what is stored first stays.
    ///
    /// - Throws: What `generate` throws, or `.recursiveGeneration`.
    @_disfavoredOverload
    @inlinable
    public func value(forKey key: Key, generate: (Key) throws -> Value) throws -> Value {
        if let value = value(forKey: key) { return value }
        return try loadedValue(key, generate)
    }

    /// Returns the value of a key; if there is none, `generate` loads it in a task of its own.
    ///
    /// A caller that is cancelled throws `CancellationError` at once. The task is cancelled when the last caller has left, and
    /// then nothing is stored.
    ///
    /// - Throws: What `generate` throws, `CancellationError`, or `.recursiveGeneration`.
    @inlinable
    public func value(
        forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        if let value = value(forKey: key) { return value }
        return try await loadedValue(key, generate)
    }

    @usableFromInline
    func loadedValue(_ key: Key, _ generate: (Key) throws -> Value) throws -> Value {
        let loaded: [Value?] = try loads.load([key], needsValue: true) { ticket in
            guard let load = begin(ticket, key) else { return }
            do { end(load, ticket, with: try generate(key)) } catch { finish(load, ticket, .failure(error)) }
        }
        return try one(loaded)
    }

    @usableFromInline
    func loadedValue(_ key: Key, _ generate: @escaping @Sendable (Key) async throws -> Value) async throws -> Value {
        try one(try await loads.load([key], needsValue: true) { await self.lead($0, key, generate) })
    }

    /// Loads a value; if that takes long, returns the old one, and the load goes on.
    private func loadedValue(
        _ key: Key, _ policy: GenerationPolicy, hasOld: Bool,
        _ generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        let limits = limits(of: key, policy, hasOld: hasOld)
        let loaded: [Value?] = try await loads.load([key], needsValue: true, within: limits) {
            await self.lead($0, key, generate)
        }
        guard loaded[0] == nil, let limits, limits.isLate.load(ordering: .relaxed) else { return try one(loaded) }
        if let value = stale(key, for: policy.staleWhenLate) { return value }
        // It was removed in the meantime.
        return try await loadedValue(key, policy, hasOld: false, generate)
    }

    private func limits(of key: Key, _ policy: GenerationPolicy, hasOld: Bool) -> LoadLimits? {
        policy.limits(hasOld: hasOld, timekeeper) {
            let name = self.name
            let owner = name.isEmpty ? "a memory cache" : "the memory cache \"\(name)\""
            return CacheError.timedOut(policy, "Key \(key) of \(owner)")
        } failed: {
            self.reportFailedRefresh(key, $0)
        }
    }

    /// Runs a load.
    ///
    /// - Parameter isDue: A Boolean value that indicates whether a value that has not expired is loaded all the same.
    func lead(
        _ ticket: LoadTicket, _ key: Key, isDue: Bool = false, _ generate: @Sendable (Key) async throws -> Value
    ) async {
        guard let load = begin(ticket, key, isDue: isDue) else { return }
        do {
            end(load, ticket, with: try await generate(load.key))
        } catch {
            finish(load, ticket, .failure(error))
        }
    }

    // Each load that succeeds has an output for its key.
    private func one(_ loaded: [Value?]) throws -> Value {
        if let value = loaded[0] { return value }
        throw CancellationError()
    }

    // MARK: One load

    /// The key of a load, and the watch that sees whether it is written in the meantime.
    private struct MemoryLoad: Sendable {
        let key: Key
        let hash: UInt64
        let watch: Int
    }

    /// Begins a load; nil if the key has a value in the meantime, which is the result then.
    ///
    /// The key is watched until the load is finished, so that each write in the meantime overtakes it.
    private func begin(_ ticket: LoadTicket, _ key: Key, isDue: Bool = false) -> MemoryLoad? {
        let (hash, now) = (seed.hash(key), now())
        let (watch, value) = state.withLock { state -> (Int, Value?) in
            let watch = state.watch(CollectionOfOne((key: key, hash: hash)))
            let found = state.table.locate(key, hash: hash)
            let isLive = found != 0 && !isDue && !state.isExpired(found, now: now)
            return (watch, isLive ? state.table.value(at: found) : nil)
        }
        let load = MemoryLoad(key: key, hash: hash, watch: watch)
        guard let value else { return load }
        finish(load, ticket, .success([value]))
        return nil
    }

    /// Ends a load, and stores its result unless the key was written since, or the last caller has left.
    private func end(_ load: MemoryLoad, _ ticket: LoadTicket, with value: Value) {
        let (key, end) = (load.key, newEnd())
        let bytes = BoundedTable<Key, Value>.bytes(of: key, cost: 0)
        let isWanted = loads.begins(ticket.load, toStoreAt: key)
        var discards: [LRUTable<Key, Value>.Node] = []
        let displaced = state.withLock { state -> Displaced<Key, Value>? in
            guard isWanted, !state.isWritten(load.watch) else { return nil }
            return state.setValue(
                value, forKey: key, hash: load.hash, cost: 0, bytes: bytes, end: end, into: &discards)
        }
        if displaced != nil { loads.overtake([key], by: ticket.load) }
        finish(load, ticket, .success([value]))
        // Last, since the program's closure may wait for the callers.
        if let displaced {
            if let end { noteEnd(end) }
            reportWrites(of: CollectionOfOne(key), CollectionOfOne(displaced), evicted: discards, isLoaded: true)
        }
    }

    private func finish(_ load: MemoryLoad, _ ticket: LoadTicket, _ result: Result<[Value?], any Error>) {
        loads.finish(ticket, result, absentUntil: nil)
        let watches = state.withLock { $0.endWatch(load.watch) }
        withExtendedLifetime(watches) {}
    }

    /// Returns a callable value that reads this cache and loads what is missing.
    ///
    /// Reads and timers leave an expired entry as long as the policy of any generator of the cache may serve it stale;
    /// ``removeExpired()``, trims and limits make no such exception. A refresh in the background that fails is written to
    /// ``LogMessage/standardLog``.
    public func generator(
        _ policy: GenerationPolicy = .init(), _ generate: @escaping @Sendable (Key) async throws -> Value
    ) -> ValueGenerator<Key, Value> {
        let stale = policy.longestStale
        while case let old = staleTime.load(ordering: .relaxed), old < stale,
            !staleTime.compareExchange(expected: old, desired: stale, ordering: .relaxed).exchanged
        {}
        return ValueGenerator { [self] key in try await value(key, policy, generate) }
    }

    private func value(
        _ key: Key, _ policy: GenerationPolicy, _ generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        try policy.check(name)
        let isDue = policy.refreshAhead.map { self.isDue(key, after: $0) } ?? false
        if let value = value(forKey: key) {
            if isDue { refresh(key, policy, isDue: true, generate) }
            return value
        }
        if let value = stale(key, for: policy.staleFor) {
            refresh(key, policy, isDue: false, generate)
            return value
        }
        do {
            let hasOld = stale(key, for: policy.staleWhenLate) != nil
            return try await loadedValue(key, policy, hasOld: hasOld, generate)
        } catch {
            let isOwnFault = (error as? CacheError)?.code == .recursiveGeneration || Task.isCancelled
            // Looked up again: it may have been removed in the meantime.
            guard !isOwnFault, let value = stale(key, for: policy.staleOnError) else { throw error }
            reportFailedRefresh(key, error)
            return value
        }
    }

    /// Returns the value of an entry that has expired, if not longer ago than `time`.
    private func stale(_ key: Key, for time: Duration) -> Value? {
        let milliseconds = GenerationPolicy.milliseconds(time)
        if milliseconds == 0 { return nil }
        let (hash, now) = (seed.hash(key), now())
        return state.withLock { state in
            let found = state.table.locate(key, hash: hash)
            if found == 0 || state.isExpired(found, now: now.subtractingSaturated(milliseconds)) { return nil }
            return state.table.value(at: found)
        }
    }

    /// Returns whether a share of the age of an entry has passed.
    private func isDue(_ key: Key, after share: Double) -> Bool {
        let (hash, now) = (seed.hash(key), now())
        return state.withLock { state in
            let found = state.table.locate(key, hash: hash)
            if found == 0 || Int(found) >= state.ends.count || state.ends[Int(found)] == .max { return false }
            let age = Double(state.age(of: found).magnitude)
            return age > 0 && age - (Double(state.ends[Int(found)]) - Double(now)) >= age * share
        }
    }

    /// Begins to load a value in the background, unless a load of the key runs.
    private func refresh(
        _ key: Key, _ policy: GenerationPolicy, isDue: Bool,
        _ generate: @escaping @Sendable (Key) async throws -> Value
    ) {
        loads.loadInBackground(key, within: limits(of: key, policy, hasOld: false)) {
            await self.lead($0, key, isDue: isDue, generate)
        } failed: {
            self.reportFailedRefresh(key, $0)
        }
    }

    private func reportFailedRefresh(_ key: Key, _ error: any Error) {
        let message = "The value for key \(key) of a memory cache could not be refreshed: \(error)"
        LogMessage.standardLog(LogMessage(.error, message, error: error as? CacheError))
    }
}
