internal import LarderLocks
internal import LarderStore

extension Cache {
    /// Returns the values of many keys as a policy says; one call of `generate` in a task of its own loads those that are missing.
    ///
    /// ```swift
    /// let found = try await articles.values(forKeys: ids, policy: policy) { ids, old in
    ///     try await api.articles(ids).mapValues { .value($0.article, maxAge: $0.age, tags: ["feed"]) }
    /// }
    /// ```
    ///
    /// Values that are due, or stale as the policy allows, are returned at once, and one more call of `generate` loads them in the background.
    /// ``GenerationPolicy/softTimeout`` holds if all keys that are missing have an old value; ``GenerationPolicy/staleOnError`` serves the
    /// old values if all of them have one.
    ///
    /// - Parameters:
    ///   - keys: The keys.
    ///   - policy: The treatment of expired values; see `generator(_:_:)` for how long the cache keeps them.
    ///   - generate: Gets the keys to load, and the entries that there are of them, which have expired or are due. Returns
    ///     ``Generated/none(for:)`` for a key that has no value, and nothing for a key of which it does not know.
    /// - Returns: The values of the keys that have one.
    /// - Throws: A load error, see ``CacheError``.
    public func values(
        forKeys keys: some Sequence<Key>, policy: GenerationPolicy = .init(),
        generate: @escaping @Sendable ([Key], [Key: CacheEntry<Key, Value>]) async throws -> [Key: Generated<Value>]
    ) async throws -> [Key: Value] {
        let loader = PolicyLoader(self, policy, acceptsAbsence: true, core.staleWindow) {
            try await Self.results($0, generate)
        }
        return try await loader.values(keys)
    }

    /// Calls a closure for rows, and returns what it has for them, in their order.
    package static func results(
        _ rows: [LoadRow],
        _ generate: @Sendable ([Key], [Key: CacheEntry<Key, Value>]) async throws -> [Key: Generated<Value>]
    ) async throws -> [Generated<Value>?] {
        let old = rows.reduce(into: [:]) { $0[$1.key] = $1.entry }
        let made = try await generate(rows.map { $0.key }, old)
        return rows.map { made[$0.key] }
    }
}

/// Loads the values of a cache as a policy says.
///
/// What memory does not have is looked up on the disk if the policy may serve an old value, and loaded if it has to be.
package struct PolicyLoader<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    package typealias Generate = Cache<Key, Value>.Generate
    private typealias Item = Cache<Key, Value>.LoadItem

    private let cache: Cache<Key, Value>
    private let policy: GenerationPolicy
    /// A Boolean value that indicates whether callers take it for an answer that there is no value.
    private let acceptsAbsence: Bool
    /// Returns whether no copy of this cache is served: another place has to be asked.
    private let skipsCopies: @Sendable () -> Bool
    private let generate: Generate
    private let window: StaleWindow

    /// - Parameters:
    ///   - window: What knows whether the store keeps expired entries for so long.
    ///   - generate: Loads rows, one or many, by the closure of the program.
    init(
        _ cache: Cache<Key, Value>, _ policy: GenerationPolicy, acceptsAbsence: Bool, _ window: StaleWindow,
        _ generate: @escaping @Sendable ([Cache<Key, Value>.LoadRow]) async throws -> [Generated<Value>?]
    ) {
        let (time, load) = (cache.rows.store.time, generate)
        let noting = policy.noting({ time.nanoseconds() }, load)
        self.init(cache, policy, acceptsAbsence: acceptsAbsence, window, skipsCopies: { false }) {
            Cache.Loaded(try await noting($0))
        }
    }

    package init(
        _ cache: Cache<Key, Value>, _ policy: GenerationPolicy, acceptsAbsence: Bool, _ window: StaleWindow,
        skipsCopies: @escaping @Sendable () -> Bool, _ generate: @escaping Generate
    ) {
        (self.cache, self.policy, self.acceptsAbsence) = (cache, policy, acceptsAbsence)
        (self.window, self.skipsCopies, self.generate) = (window, skipsCopies, generate)
        keepExpired()
    }

    /// Asks the store to leave expired entries as long as the policy may serve them, until it does.
    ///
    /// While the manager is suspended it does not.
    private func keepExpired() {
        let longest = policy.longestStale
        if longest == 0 || cache.rows.store.isReadOnly { return }
        window.ask(longest, at: cache.rows.now()) { [cache] in cache.rows.keepExpired(longest, whenKept: $0) }
    }

    // MARK: Calls

    /// Returns the value of a key; nil if it is known or found to have none.
    package func value(_ key: Key) async throws -> Value? {
        try policy.check(cache.name)
        keepExpired()
        let rule = RefreshRule(policy.refreshAhead)
        if !skipsCopies(), let value = cache.valueInMemory(key) {
            if isDueInMemory(key, rule) { refresh([(key, try cache.stored(key))], rule) }
            return value
        }
        return try await found([(key, try cache.stored(key))], rule)[0]
    }

    /// Returns the values of the keys that have one.
    package func values(_ keys: some Sequence<Key>) async throws -> [Key: Value] {
        try policy.check(cache.name)
        keepExpired()
        let (rule, skipsCopies) = (RefreshRule(policy.refreshAhead), skipsCopies())
        var (known, due, rest, seen) = ([Key: Value](), [Item](), [Item](), Set<StoredKey>())
        for key in keys where known[key] == nil {
            if !skipsCopies, let value = cache.valueInMemory(key) {
                known[key] = value
                if isDueInMemory(key, rule) { due.append((key, try cache.stored(key))) }
                continue
            }
            let stored = try cache.stored(key)
            if seen.insert(stored).inserted { rest.append((key, stored)) }
        }
        if rest.isEmpty {
            refresh(due, rule)
            return known
        }
        return zip(rest, try await found(rest, rule, due)).reduce(into: known) { $0[$1.0.key] = $1.1 }
    }

    /// Returns the values of keys that memory does not have, in their order.
    ///
    /// - Parameter due: What is due in memory.
    private func found(_ items: [Item], _ rule: RefreshRule, _ due: [Item] = []) async throws -> [Value?] {
        if skipsCopies() {
            refresh(due, rule)
            return try await loaded(items, hasOld: false)
        }
        // Without a policy only the load reads the disk. What a refresh loads again may be served from there.
        if policy.isPlain, !cache.loads.stand(at: items.map { $0.stored }) {
            let start = cache.rows.now()
            let entries = try await loadedEntries(items, within: limits(of: items, hasOld: false))
            refresh(due + zip(items, entries).filter { isDue($1, since: start) }.map { $0.0 }, rule)
            return entries.map { $0?.value }
        }
        let rows = try await storedRows(items)
        var (values, due) = ([Value?](), due)
        for (item, row) in zip(items, rows) {
            let isServed = row.live != nil || isStale(row, for: policy.staleFor)
            values.append(isServed ? row.entry?.value : nil)
            if isServed, row.live == nil || isDue(row, rule) { due.append(item) }
        }
        countStale(zip(values, rows).count { $0 != nil && $1.live == nil })
        refresh(due, rule)
        let missing = items.indices.filter { values[$0] == nil }
        if missing.isEmpty { return values }
        let rest = missing.count == items.count ? items : missing.map { items[$0] }
        let hasOld = missing.allSatisfy { isStale(rows[$0], for: policy.staleWhenLate) }
        for (place, value) in zip(missing, try await loadedOrStale(rest, hasOld: hasOld)) { values[place] = value }
        return values
    }

    /// Loads values; if that fails, returns the old ones.
    private func loadedOrStale(_ items: [Item], hasOld: Bool) async throws -> [Value?] {
        do {
            return try await loaded(items, hasOld: hasOld)
        } catch {
            let isOwnFault = (error as? CacheError)?.code == .recursiveGeneration || Task.isCancelled
            guard !isOwnFault, let values = await staleValues(items, for: policy.staleOnError) else { throw error }
            reportFailedRefresh(items, error)
            return values
        }
    }

    /// Loads values; if that takes long, returns the old ones, and the load goes on.
    private func loaded(_ items: [Item], hasOld: Bool) async throws -> [Value?] {
        let limits = limits(of: items, hasOld: hasOld)
        let entries = try await loadedEntries(items, within: limits)
        var values = entries.map { $0?.value }
        let late = limits?.late ?? []
        if late.isEmpty { return values }
        let rest = late.map { items[$0] }
        var old: [Value?]? = await staleValues(rest, for: policy.staleWhenLate)
        // One was removed in the meantime.
        if old == nil { old = try await loaded(rest, hasOld: false) }
        for (place, value) in zip(late, old ?? []) { values[place] = value }
        return values
    }

    private func loadedEntries(_ items: [Item], within limits: LoadLimits?) async throws -> [CacheEntry<Key, Value>?] {
        let skipsCopies = skipsCopies
        let isSkipping = skipsCopies()
        let now = isSkipping ? nil : cache.rows.now()
        if acceptsAbsence, !isSkipping, items.contains(where: { cache.isAbsent($0.stored) }) {
            return try await entriesWithAbsences(items, within: limits)
        }
        return try await cache.load(
            items, needsValue: !acceptsAbsence, at: now, within: limits, isDue: { _ in skipsCopies() }, generate)
    }

    /// Loads no key that is known to have no value.
    private func entriesWithAbsences(
        _ items: [Item], within limits: LoadLimits?
    ) async throws -> [CacheEntry<Key, Value>?] {
        let isAbsent = items.map { cache.isAbsent($0.stored) }
        let rest = items.indices.filter { !isAbsent[$0] }
        // Another process may have written a key that is known to be absent.
        let found = try await cache.entries(forKeys: zip(items, isAbsent).filter { $1 }.map { $0.0.key })
        var entries = zip(items, isAbsent).map { $1 ? found[$0.key] : nil }
        if rest.isEmpty { return entries }
        let loaded = try await cache.load(
            rest.map { items[$0] }, needsValue: false, at: cache.rows.now(), within: limits, generate)
        for (place, entry) in zip(rest, loaded) { entries[place] = entry }
        limits?.note(late: limits?.late.map { rest[$0] } ?? [])
        return entries
    }

    private func limits(of items: [Item], hasOld: Bool) -> LoadLimits? {
        policy.limits(hasOld: hasOld, cache.manager.timekeeper) { [cache, policy] in
            CacheError.timedOut(policy, "\(Self.text(items)) of cache \"\(cache.name)\"")
        } failed: { error, places in
            reportFailedRefresh(places.map { items[$0] }, error)
        }
    }

    private static func text(_ items: [Item]) -> String {
        "Key \"\(items[0].key)\"" + (items.count == 1 ? "" : " and \(items.count - 1) more")
    }

    // MARK: Old values

    /// Returns what is stored for keys, also if it has expired.
    private func storedRows(_ items: [Item]) async throws(CacheError) -> [Cache<Key, Value>.LoadRow] {
        try await cache.reading { () throws(CacheError) in
            var isCurrent = false
            return try cache.storedRows(items, { _ in false }, &isCurrent)
        }
    }

    /// Returns old values, read again since they may have been removed; nil unless all may be served.
    private func staleValues(_ items: [Item], for time: Duration) async -> [Value]? {
        if time <= .zero || skipsCopies() { return nil }
        do throws(CacheError) {
            let rows = try await storedRows(items)
            let served = rows.filter { $0.live != nil || isStale($0, for: time) }
            if served.count < rows.count { return nil }
            countStale(served.count { $0.live == nil })
            return served.compactMap { $0.entry?.value }
        } catch {
            return nil
        }
    }

    /// Returns whether there is an entry that has expired no longer ago than some time.
    private func isStale(_ row: Cache<Key, Value>.LoadRow, for time: Duration) -> Bool {
        guard time > .zero, row.entry != nil, let header = row.header else { return false }
        // With an age of zero the end is a moment before the write.
        let end = header.end == header.writtenAt.addingSaturated(-1) ? header.writtenAt : header.end
        return cache.rows.store.time.now() <= end.addingSaturated(GenerationPolicy.milliseconds(time))
    }

    private func countStale(_ count: Int) {
        if count == 0 { return }
        cache.copies.count {
            $0.diskHits += count
            $0.staleHits += count
        }
    }

    // MARK: Refreshes

    private func isDueInMemory(_ key: Key, _ rule: RefreshRule) -> Bool {
        let (copies, hash) = (cache.copies, cache.copies.seed.hash(key))
        let times = copies.state.withLock { $0.refreshTimes(of: key, hash: hash) }
        return times.map { rule.isDue($0, at: cache.rows.store.time.now()) } ?? false
    }

    private func isDue(_ row: Cache<Key, Value>.LoadRow, _ rule: RefreshRule) -> Bool {
        row.header.map { rule.isDue(RefreshTimes($0.summary), at: cache.rows.store.time.now()) } ?? false
    }

    /// Returns whether an entry that was not loaded just now has a refresh time of its own, which has come.
    private func isDue(_ entry: CacheEntry<Key, Value>?, since start: Int64) -> Bool {
        guard let metadata = entry?.metadata, let moment = metadata.refreshesAt else { return false }
        let isOld = SystemClock.milliseconds(of: metadata.writtenAt) < start
        return isOld && SystemClock.milliseconds(of: moment) <= cache.rows.now()
    }

    /// Begins to load values in the background, those of which no load runs.
    private func refresh(_ items: [Item], _ rule: RefreshRule) {
        if items.isEmpty { return }
        let (cache, generate) = (cache, generate)
        cache.loads.loadInBackground(items.map { $0.stored }, within: limits(of: items, hasOld: false)) {
            await cache.lead(
                $0, items,
                isDue: { rule.isDue(RefreshTimes($0.summary), at: cache.rows.store.time.now()) },
                countsMisses: false, generate)
        } failed: { error, places in
            reportFailedRefresh(places.map { items[$0] }, error)
        }
    }

    private func reportFailedRefresh(_ items: [Item], _ error: any Error) {
        for item in items {
            let message =
                "The value for key \"\(item.key)\" of cache \"\(cache.name)\" could not be refreshed: \(error)"
            let event = CacheEvent(.refreshFailed, cacheName: cache.name, key: item.stored.name, message: message)
            cache.manager.reporter.report(event, .error, error: error as? CacheError)
        }
    }
}

/// Asks the store to keep expired entries for some time, and remembers that it does.
package final class StaleWindow: Sendable {
    /// The milliseconds for which the store is known to keep them.
    private let kept = Atomic<Int64>(0)
    /// When the store may be asked again.
    private let askAt = Atomic<Int64>(.min)

    package init() {}

    func ask(_ milliseconds: Int64, at now: Int64, _ ask: (_ whenKept: @escaping @Sendable () -> Void) -> Bool) {
        if kept.load(ordering: .relaxed) >= milliseconds || now < askAt.load(ordering: .relaxed) { return }
        // The disk may be full.
        askAt.store(now.addingSaturated(60_000), ordering: .relaxed)
        let isAsked = ask { [self] in
            kept.store(milliseconds, ordering: .relaxed)
            askAt.store(.min, ordering: .relaxed)
        }
        if !isAsked { askAt.store(.min, ordering: .relaxed) }
    }

    /// Notes that the cache may be another one.
    func reset() { kept.store(0, ordering: .relaxed) }
}
