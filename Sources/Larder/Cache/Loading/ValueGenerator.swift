internal import Foundation
internal import Synchronization

/// A sub-cache and a closure that makes what is missing in it, as one callable value; see ``Cache/generator(_:_:)``.
///
/// ```swift
/// let article = articles.generator { id in try await api.article(id) }
/// let first = try await article(1)
/// ```
public struct ValueGenerator<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    private let cache: Cache<Key, Value>
    private let policy: GenerationPolicy
    private let generate: @Sendable (Key) async throws -> Value
    /// Lets sweeps leave what it may still serve while it lives.
    private let keeping: KeptExpired?

    fileprivate init(
        _ cache: Cache<Key, Value>, _ policy: GenerationPolicy,
        _ generate: @escaping @Sendable (Key) async throws -> Value
    ) {
        self.cache = cache
        self.policy = policy
        self.generate = generate
        keeping = policy.longestStale > 0 ? KeptExpired(cache.ledger, milliseconds: policy.longestStale) : nil
    }

    /// The value of a key: the one that is there, a stale one as the policy allows, or one that is made now.
    public func callAsFunction(_ key: Key) async throws -> Value {
        try policy.check(cache.name)
        if policy.isPlain { return try await cache.value(forKey: key, generate: generate) }
        if let candidate = try await candidate(key) {
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
            return try await cache.load([key]) { [generate] _ in [key: GeneratedDraft(value: try await generate(key))] }
                .one(key).value
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

    private func refresh(_ key: Key) {
        let cache = cache
        let plan = LoadPlan<Key, CacheEntry<Key, Value>> { [self] keys in
            // Another call may have loaded it since.
            let found = try await offload { () throws(CacheError) in try cache.core.findEntries(keys, cache.terms) }
            return found.filter { !isDue(Candidate($0.value), cache.terms.now()) }
        } load: { [generate] _, permit in
            try await cache.store([(key, GeneratedDraft(value: try await generate(key)))], permit)
        }
        cache.core.loads.refresh([key], plan, cache.loadRules) { [cache] _, error in cache.noteFailedRefresh(key, error)
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
    /// A callable value that reads this sub-cache and makes what is missing.
    ///
    /// While it lives, sweeps leave what it may still serve, and the sub-cache's limits take it no earlier than what is
    /// not over; ``CacheOptions/keepsExpired`` does the same for programs that make their generator later.
    /// `removeExpired()` and trims make no such exception.
    public func generator(
        _ policy: GenerationPolicy = .init(), _ generate: @escaping @Sendable (Key) async throws -> Value
    ) -> ValueGenerator<Key, Value> {
        ValueGenerator(self, policy, generate)
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
