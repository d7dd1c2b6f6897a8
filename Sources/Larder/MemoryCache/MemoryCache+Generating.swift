internal import LarderLocks
internal import LarderStore

extension MemoryCache {
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
            if isDue { refresh(key, isDue: true, generate) }
            return value
        }
        if let value = stale(key, for: policy.staleFor) {
            refresh(key, isDue: false, generate)
            return value
        }
        do {
            return try await loadedValue(key, generate)
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
    private func refresh(_ key: Key, isDue: Bool, _ generate: @escaping @Sendable (Key) async throws -> Value) {
        loads.loadInBackground((key, key)) {
            await self.lead($0, isDue: isDue, generate)
        } failed: {
            self.reportFailedRefresh(key, $0)
        }
    }

    private func reportFailedRefresh(_ key: Key, _ error: any Error) {
        let message = "The value for key \(key) of a memory cache could not be refreshed: \(error)"
        LogMessage.standardLog(LogMessage(.error, message, error: error as? CacheError))
    }
}
