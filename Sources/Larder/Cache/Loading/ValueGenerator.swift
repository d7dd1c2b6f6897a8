internal import Foundation
internal import Synchronization

/// A cache and a closure that loads what is missing in it, as one callable value; see `Cache.generator(_:_:)`.
///
/// ```swift
/// let article = articles.generator { id in try await api.article(id) }
/// let first = try await article(1)
/// ```
public struct ValueGenerator<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    fileprivate let load: @Sendable (Key) async throws -> Value

    /// Returns the value of a key: the stored one, a stale one as the policy allows, or one that is loaded now.
    ///
    /// - Throws: What the closure throws, `CancellationError`, or a ``CacheError`` if the value cannot be read or stored.
    public func callAsFunction(_ key: Key) async throws -> Value {
        try await load(key)
    }
}

/// Loads the values of a cache as a policy says.
private final class PolicyLoader<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    private let cache: Cache<Key, Value>
    private let policy: GenerationPolicy
    /// Whether callers take it for an answer that there is no value.
    private let acceptsAbsence: Bool
    /// Whether one call of the closure loads many keys.
    private let isBulk: Bool
    private let generate: @Sendable ([Key]) async throws -> [Key: LoadedValue<Value>]
    /// The keys of the refreshes that start together.
    private let batch = Mutex<[Key]>([])
    /// Lets sweeps leave what it may still serve while it lives.
    private let keeping: KeptExpired?

    init(
        _ cache: Cache<Key, Value>, _ policy: GenerationPolicy, acceptsAbsence: Bool, isBulk: Bool = false,
        _ generate: @escaping @Sendable ([Key]) async throws -> [Key: LoadedValue<Value>]
    ) {
        self.cache = cache
        self.policy = policy
        self.acceptsAbsence = acceptsAbsence
        self.isBulk = isBulk
        self.generate = generate
        keeping = policy.longestStale > 0 ? KeptExpired(cache.ledger, milliseconds: policy.longestStale) : nil
    }

    func value(_ key: Key) async throws -> Value? {
        try policy.check(cache.name)
        if policy.isPlain, let value = try cache.glance(key) { return value }
        if acceptsAbsence, cache.isKnownAbsent(key) {
            // Another process may have written the key.
            _ = try cache.manager.store()
            return try await cache.find([key])[key]?.value
        }
        if !policy.isPlain, let candidate = try await candidate(key) {
            let now = cache.terms.now()
            if !candidate.isOver(at: now) {
                if isDue(candidate, now) { refresh(key) }
                return candidate.value
            }
            if !candidate.isOver(at: now, for: policy.staleFor) {
                refresh(key)
                return candidate.value
            }
        }
        do {
            return try await cache.load([key], acceptsAbsence: acceptsAbsence, generate)[key]?.value
        } catch {
            if let value = await instead(key, of: error) { return value }
            throw error
        }
    }

    /// What there is, over or not: from memory where that knows, else from disk.
    private func candidate(_ key: Key) async throws -> Candidate<Value>? {
        _ = try cache.manager.store()
        if let candidate = cache.core.candidate(key, cache.terms) { return candidate }
        return try await offload { [cache] () throws(CacheError) in
            // If there is none, the load looks again, and counts the miss.
            if let entry = try cache.core.findEntries([key], cache.terms, countsMisses: false)[key] {
                return Candidate(entry)
            }
            return try cache.core.remains(of: key, cache.terms).map { Candidate($0.entry) }
        }
    }

    /// Whether a value is old enough to be refreshed ahead of its end.
    private func isDue(_ candidate: Candidate<Value>, _ now: Int64) -> Bool {
        guard let share = policy.refreshAhead, let end = candidate.end else { return false }
        let age = Double(end) - Double(candidate.writtenAt)
        return Double(now) - Double(candidate.writtenAt) >= age * share
    }

    /// The time for which refreshes wait for others that start together with them.
    private static var batchInterval: Duration { .milliseconds(5) }

    private func refresh(_ key: Key) {
        guard isBulk else { return refresh([key]) }
        let isFirst = batch.withLock { batch in
            batch.append(key)
            return batch.count == 1
        }
        if !isFirst { return }
        _ = cache.ledger.store.timekeeper.wake(Self.batchInterval) { [self] in
            refresh(
                batch.withLock { batch in
                    defer { batch = [] }
                    return batch
                })
        }
    }

    private func refresh(_ keys: [Key]) {
        let cache = cache
        let plan = LoadPlan<Key, CacheEntry<Key, Value>> { [self] keys in
            // Another call may have loaded one since.
            try await cache.find(keys).filter { !isDue(Candidate($0.value), cache.terms.now()) }
        } load: { [generate] keys, permit in
            let loaded = try await generate(keys)
            return try await cache.store(keys.compactMap { key in loaded[key].map { (key, $0) } }, permit)
        }
        var seen: Set<Key> = []
        let unique = keys.filter { seen.insert($0).inserted }
        cache.core.loads.refresh(unique, plan, cache.loadRules(false)) { keys, error in
            for key in keys { cache.noteFailedRefresh(key, error) }
        }
    }

    /// What to serve in place of an error.
    private func instead(_ key: Key, of error: any Error) async -> Value? {
        if Task.isCancelled || policy.staleOnError == .zero { return nil }
        if let error = error as? CacheError, error.code == .recursiveGeneration { return nil }
        let left: Candidate<Value>?
        do throws(CacheError) {
            left = try await offload { [cache] () throws(CacheError) in
                try cache.core.remains(of: key, cache.terms).map { Candidate($0.entry) }
            }
        } catch {
            // What the closure threw is what the caller is to learn.
            return nil
        }
        guard let left, !left.isOver(at: cache.terms.now(), for: policy.staleOnError) else { return nil }
        cache.noteFailedRefresh(key, error)
        return left.value
    }
}

extension Cache {
    /// Returns a callable value that reads this cache and loads what is missing.
    ///
    /// While it lives, sweeps leave what it may still serve, and the limits of the cache treat that like live entries.
    /// ``CacheOptions/keepsExpired`` does the same for programs that create their generator later. `removeExpired()` and trims make
    /// no such exception.
    public func generator(
        _ policy: GenerationPolicy = .init(), _ generate: @escaping @Sendable (Key) async throws -> Value
    ) -> ValueGenerator<Key, Value> {
        let loader = PolicyLoader(self, policy, acceptsAbsence: false) { keys in
            var loaded: [Key: LoadedValue<Value>] = [:]
            for key in keys { loaded[key] = LoadedValue(try await generate(key)) }
            return loaded
        }
        return ValueGenerator { key in
            guard let value = try await loader.value(key) else {
                preconditionFailure("A load of one value returns it.")
            }
            return value
        }
    }

    /// Returns a callable value that reads this cache and loads what is missing; its closure may say more than the value.
    ///
    /// - Parameters:
    ///   - policy: How expired values are treated.
    ///   - generate: Returns the value with its attributes, or that there is none: callers get nil then.
    @_disfavoredOverload
    public func generator(
        _ policy: GenerationPolicy = .init(), _ generate: @escaping @Sendable (Key) async throws -> Generated<Value>
    ) -> ValueGenerator<Key, Value?> {
        generator(policy) { key, _ in try await generate(key) }
    }

    /// Returns a callable value that reads this cache and loads what is missing, with the old entry in hand.
    ///
    /// Together with ``GenerationPolicy/staleFor`` that makes conditional requests in the background: keep an ETag as extended
    /// data, send it, and return ``Generated/notModified`` if the server has nothing newer.
    ///
    /// - Parameters:
    ///   - policy: How expired values are treated.
    ///   - generate: Gets the key and what is left of its entry, live or expired; nil if nothing is left.
    public func generator(
        _ policy: GenerationPolicy = .init(),
        _ generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) -> ValueGenerator<Key, Value?> {
        let loader = PolicyLoader(self, policy, acceptsAbsence: true) { [self] keys in
            var loaded: [Key: LoadedValue<Value>] = [:]
            for key in keys { loaded[key] = try await withOld(key, generate) }
            return loaded
        }
        return ValueGenerator { try await loader.value($0) }
    }

    /// Returns a callable value that reads this cache; one call of its closure refreshes many keys.
    ///
    /// Refreshes that start within 5 milliseconds run in one call of the closure. A missing value is loaded alone.
    ///
    /// - Parameters:
    ///   - policy: How expired values are treated.
    ///   - generate: Gets keys; those that it returns nothing for stay without a value.
    public func bulkGenerator(
        _ policy: GenerationPolicy = .init(),
        _ generate: @escaping @Sendable ([Key]) async throws -> [Key: Generated<Value>]
    ) -> ValueGenerator<Key, Value?> {
        let loader = PolicyLoader(self, policy, acceptsAbsence: true, isBulk: true) { keys in
            try await generate(keys).mapValues { LoadedValue($0) }
        }
        return ValueGenerator { try await loader.value($0) }
    }

    fileprivate func noteFailedRefresh(_ key: Key, _ error: any Error) {
        let failure = error as? CacheError
        core.report(
            .refreshFailed, key: core.storedIfAny(key),
            "A value of cache \"\(name)\" for key \(key) could not be refreshed: \(error)", error: failure)
    }
}

/// A value that may be served, live or stale.
private struct Candidate<Value: Sendable>: Sendable {
    let value: Value
    let writtenAt: Int64
    /// The last moment of its age.
    let end: Int64?
    /// Whether it was over when it was found; with an age of zero it is so at its `end` too.
    let isExpired: Bool

    init(value: Value, writtenAt: Int64, end: Int64?, isExpired: Bool) {
        self.value = value
        self.writtenAt = writtenAt
        self.end = end
        self.isExpired = isExpired
    }

    init<Key>(_ entry: CacheEntry<Key, Value>) {
        self.init(
            value: entry.value, writtenAt: SystemClock.milliseconds(of: entry.metadata.writtenAt),
            end: entry.metadata.expiresAt.map { SystemClock.milliseconds(of: $0) }, isExpired: entry.isExpired)
    }

    /// Whether it has been over for longer than a duration.
    func isOver(at now: Int64, for duration: Duration = .zero) -> Bool {
        if isExpired, duration == .zero { return true }
        guard let end else { return false }
        return now > end.addingSaturated(GenerationPolicy.milliseconds(duration))
    }
}

extension SubCache {
    /// What memory has of a key, over or not; a live one counts as used.
    fileprivate func candidate(_ key: Key, _ terms: CacheTerms<Value>) -> Candidate<Value>? {
        let hash = seed.hash(key)
        prepareToNoteUses()
        let now = terms.now()
        let round = front.withLock { $0.watch }.round()
        return front.withLock { front in
            let isExpired: Bool
            switch front.look(key, hash: hash, rule: terms.rule, now: now, round: round) {
            case .hit: isExpired = false
            case .over: isExpired = true
            case .absent, .future, .unsure: return nil
            }
            let place = front.memory.table.locate(key, hash: hash)
            if place.index == 0 { return nil }
            let entry = front.entry(at: place.index)
            let end = entry.rule(else: terms.rule).end(start: entry.start(terms.rule, now: now))
            return Candidate(value: entry.value, writtenAt: entry.writtenAt, end: end, isExpired: isExpired)
        }
    }
}

/// Lets sweeps leave entries after their end, until it is released.
private final class KeptExpired: Sendable {
    private let ledger: RowLedger
    private let number: Int

    init(_ ledger: RowLedger, milliseconds: Int64) {
        self.ledger = ledger
        number = ledger.keepExpired(for: milliseconds)
    }

    deinit {
        ledger.stopKeeping(number)
    }
}
