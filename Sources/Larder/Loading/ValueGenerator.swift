public import Foundation
internal import LarderLocks
internal import LarderStore

/// A cache and a closure that loads what is missing in it, as one callable value; see `Cache.generator(_:_:)`.
///
/// ```swift
/// let article = articles.generator { id in try await api.article(id) }
/// let first = try await article(1)
/// ```
public struct ValueGenerator<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    let load: @Sendable (Key) async throws -> Value

    package init(load: @escaping @Sendable (Key) async throws -> Value) { self.load = load }

    /// Returns the value of a key: the stored one, a stale one as the policy allows, or one that is loaded now.
    ///
    /// - Throws: A load error, see ``CacheError``.
    public func callAsFunction(_ key: Key) async throws -> Value { try await load(key) }
}

extension Cache {
    /// Returns a callable value that reads this cache and loads what is missing.
    ///
    /// Sweeps leave what it may still serve stale: all generators of a cache, and ``CacheOptions/keepsExpired``, name the
    /// longest time together. `removeExpired()`, trims and limits make no such exception. The call never waits: the time is
    /// declared in the background.
    public func generator(
        _ policy: GenerationPolicy = .init(), _ generate: @escaping @Sendable (Key) async throws -> Value
    ) -> ValueGenerator<Key, Value> {
        let load = generator(policy, acceptsAbsence: false) { key, _ in .value(try await generate(key)) }
        return ValueGenerator { try await self.one($0, load($0)) }
    }

    func generator(
        _ policy: GenerationPolicy, acceptsAbsence: Bool,
        _ generate: @escaping @Sendable (Key, Entry?) async throws -> Generated<Value>
    ) -> ValueGenerator<Key, Value?> {
        let loader = PolicyLoader(self, policy, acceptsAbsence: acceptsAbsence, generate)
        return ValueGenerator { try await loader.value($0) }
    }

    /// Returns a callable value that reads this cache and loads what is missing, with the old entry in hand.
    ///
    /// Together with ``GenerationPolicy/staleFor`` that makes conditional requests in the background: keep an ETag as extended
    /// data, send it, and return ``Generated/notModified`` if the server has nothing newer.
    ///
    /// - Parameters:
    ///   - policy: The treatment of expired values.
    ///   - generate: Gets the key and its entry, which may have expired; nil if there is none. If it returns
    ///     ``Generated/none(for:)``, callers get nil.
    public func generator(
        _ policy: GenerationPolicy = .init(),
        _ generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) -> ValueGenerator<Key, Value?> {
        generator(policy, acceptsAbsence: true, generate)
    }
}

/// Loads the values of a cache as a policy says.
private struct PolicyLoader<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    typealias Entry = CacheEntry<Key, Value>

    let cache: Cache<Key, Value>
    private let policy: GenerationPolicy
    /// A Boolean value that indicates whether callers take it for an answer that there is no value.
    private let acceptsAbsence: Bool
    private let generate: @Sendable (Key, Entry?) async throws -> Generated<Value>
    private let window = Window()

    /// When the store may be asked again how long expired entries stay; `.max` once it knows.
    private final class Window: Sendable {
        let askAt = Atomic<Int64>(.min)
    }

    init(
        _ cache: Cache<Key, Value>, _ policy: GenerationPolicy, acceptsAbsence: Bool,
        _ generate: @escaping @Sendable (Key, Entry?) async throws -> Generated<Value>
    ) {
        (self.cache, self.policy, self.acceptsAbsence, self.generate) = (cache, policy, acceptsAbsence, generate)
        keepExpired()
    }

    /// Asks the store to leave expired entries as long as the policy may serve them, until it does.
    ///
    /// While the manager is suspended it does not.
    private func keepExpired() {
        if policy.longestStale == 0 || cache.rows.store.isReadOnly { return }
        let askAt = window.askAt.load(ordering: .relaxed)
        if askAt == .max { return }
        let now = cache.rows.now()
        if now < askAt { return }
        // The disk may be full.
        window.askAt.store(now.addingSaturated(60_000), ordering: .relaxed)
        let isAsked = cache.rows.keepExpired(policy.longestStale) { [window] in
            window.askAt.store(.max, ordering: .relaxed)
        }
        if !isAsked { window.askAt.store(.min, ordering: .relaxed) }
    }

    func value(_ key: Key) async throws -> Value? {
        try policy.check(cache.name)
        keepExpired()
        if let value = cache.valueInMemory(key) {
            if isDueInMemory(key) { refresh(key) }
            return value
        }
        // Without a policy only the load reads the disk.
        var hasOld = false
        if !policy.isPlain, let (entry, row) = try await stored(key) {
            if !entry.isExpired {
                if isDue(row.end, row.age) { refresh(key) }
                return entry.value
            }
            if isServed(entry, row, for: policy.staleFor) {
                refresh(key)
                return entry.value
            }
            hasOld = isStale(row, for: policy.staleWhenLate)
        }
        do {
            return try await loaded(key, hasOld: hasOld)
        } catch {
            let isOwnFault = (error as? CacheError)?.code == .recursiveGeneration || Task.isCancelled
            guard !isOwnFault, let value = await staleValue(key, for: policy.staleOnError) else { throw error }
            reportFailedRefresh(key, error)
            return value
        }
    }

    /// Loads a value; if that takes long, returns the old one, and the load goes on.
    private func loaded(_ key: Key, hasOld: Bool) async throws -> Value? {
        let limits = limits(of: key, hasOld: hasOld)
        let entry = try await cache.loadedEntry(key, acceptsAbsence: acceptsAbsence, within: limits, generate)
        guard entry == nil, let limits, limits.isLate.load(ordering: .relaxed) else { return entry?.value }
        if let value = await staleValue(key, for: policy.staleWhenLate) { return value }
        // It was removed in the meantime.
        return try await loaded(key, hasOld: false)
    }

    private func limits(of key: Key, hasOld: Bool) -> LoadLimits? {
        policy.limits(hasOld: hasOld, cache.manager.timekeeper) { [cache, policy] in
            CacheError.timedOut(policy, "Key \(key) of cache \"\(cache.name)\"")
        } failed: {
            reportFailedRefresh(key, $0)
        }
    }

    /// Returns an old value, read again since it may have been removed; nil if it may not be served.
    private func staleValue(_ key: Key, for time: Duration) async -> Value? {
        if time <= .zero { return nil }
        do throws(CacheError) {
            guard let (entry, row) = try await stored(key) else { return nil }
            return isServed(entry, row, for: time) ? entry.value : nil
        } catch {
            return nil
        }
    }

    /// Returns the entry that is stored, also if it has expired; nil if there is none, or it does not decode.
    private func stored(_ key: Key) async throws(CacheError) -> (entry: Entry, row: RowSummary)? {
        do throws(CacheError) {
            return try await cache.reading { () throws(CacheError) in try cache.storedEntry(key) }
        } catch {
            if error.code == .undecodable { return nil }
            throw error
        }
    }

    /// Returns whether an entry may be served, for some time after it has expired, and counts the hit.
    private func isServed(_ entry: Entry, _ row: RowSummary, for time: Duration) -> Bool {
        // Counted when it was read.
        if !entry.isExpired { return true }
        if !isStale(row, for: time) { return false }
        cache.copies.count { $0.diskHits += 1 }
        return true
    }

    /// Returns whether an entry has expired no longer ago than some time.
    private func isStale(_ row: RowSummary, for time: Duration) -> Bool {
        // With an age of zero the end is a moment before the write.
        let end = row.end == row.writtenAt.addingSaturated(-1) ? row.writtenAt : row.end
        let last = end.addingSaturated(GenerationPolicy.milliseconds(time))
        return time > .zero && cache.rows.store.time.now() <= last
    }

    private func isDueInMemory(_ key: Key) -> Bool {
        if policy.refreshAhead == nil { return false }
        let (copies, hash) = (cache.copies, cache.copies.seed.hash(key))
        return copies.state.withLock({ $0.age(of: key, hash: hash) }).map { isDue($0.end, $0.length) } ?? false
    }

    private func isDue(_ header: EntryHeader) -> Bool { isDue(header.end, header.summary.age) }

    /// Returns whether the share of an age has passed after which an entry is refreshed.
    private func isDue(_ end: Int64, _ age: Int64) -> Bool {
        guard let share = policy.refreshAhead, end != .max else { return false }
        let left = Double(end) - Double(cache.rows.store.time.now())
        return Double(age) - left >= Double(age) * share
    }

    /// Begins to load a value in the background, unless a load of the key runs.
    private func refresh(_ key: Key) {
        let item: Cache<Key, Value>.LoadItem
        // A key that cannot be stored has no value to refresh.
        do throws(CacheError) { item = (key, try cache.stored(key)) } catch { return }
        cache.loads.loadInBackground(item.stored, within: limits(of: key, hasOld: false)) {
            await cache.lead($0, [item], isDue: isDue, countsMisses: false) {
                Cache.Loaded([try await generate(key, $0[0].entry)])
            }
        } failed: {
            reportFailedRefresh(key, $0)
        }
    }

    private func reportFailedRefresh(_ key: Key, _ error: any Error) {
        let message = "The value for key \(key) of cache \"\(cache.name)\" could not be refreshed: \(error)"
        let event = CacheEvent(.refreshFailed, cacheName: cache.name, key: cache.storedName(of: key), message: message)
        cache.manager.reporter.report(event, .error, error: error as? CacheError)
    }
}

/// The treatment of values by a ``ValueGenerator`` that have expired, or soon will.
public struct GenerationPolicy: Hashable, Sendable {
    /// The time after its expiration in which a value is still served, while one refresh runs in the background.
    public var staleFor: Duration

    /// The time after its expiration in which a value is still served if a load fails.
    public var staleOnError: Duration

    /// The share of its age, from 0 to 1, after which a value is refreshed in the background by the next call; nil for never.
    public var refreshAhead: Double?

    /// The time after which callers of a load get the old value, if there is one, while the load goes on; nil if they wait.
    ///
    /// The next callers get the new value once it is stored. The old value is served for ``staleFor`` or ``staleOnError`` after its
    /// expiration, whichever is longer, and for a day if both are zero.
    public var softTimeout: Duration?

    /// The time after which a load is ended; nil for none.
    ///
    /// Its callers get an old value as ``staleOnError`` allows, or throw ``CacheError/Code/timedOut``. Its task is cancelled, and
    /// nothing is stored, whatever it does then. A load that another policy has begun is left by the callers with this one.
    public var timeout: Duration?

    /// Creates a policy; by default an expired value is loaded again, and its callers wait.
    ///
    /// Calls of a generator throw ``CacheError/Code/invalidConfiguration`` for a negative time, a timeout of zero, and a share outside
    /// 0 to 1.
    public init(
        staleFor: Duration = .zero, staleOnError: Duration = .zero, refreshAhead: Double? = nil,
        softTimeout: Duration? = nil, timeout: Duration? = nil
    ) {
        (self.staleFor, self.staleOnError, self.refreshAhead) = (staleFor, staleOnError, refreshAhead)
        (self.softTimeout, self.timeout) = (softTimeout, timeout)
    }

    var isPlain: Bool { longestStale == 0 && refreshAhead == nil }

    /// The milliseconds after its expiration in which a value may be served.
    var longestStale: Int64 {
        max(Self.milliseconds(staleFor), Self.milliseconds(staleOnError), Self.milliseconds(staleWhenLate))
    }

    /// The time after its expiration in which a value is served if a load takes long.
    var staleWhenLate: Duration {
        if softTimeout == nil { return .zero }
        let stale = max(staleFor, staleOnError)
        return stale > .zero ? stale : .seconds(86_400)
    }

    /// What bounds a call and the loads that it begins; nil if nothing does.
    func limits(
        hasOld: Bool, _ timekeeper: Timekeeper, timeout error: @escaping @Sendable () -> any Error,
        failed: @escaping @Sendable (any Error) -> Void
    ) -> LoadLimits? {
        let soft = hasOld ? softTimeout : nil
        if soft == nil && timeout == nil { return nil }
        return LoadLimits(soft: soft, hard: timeout, timekeeper, timeout: error, failed: failed)
    }

    func check(_ cache: @autoclosure () -> String) throws(CacheError) {
        let times = [staleFor, staleOnError, softTimeout ?? .zero]
        if times.allSatisfy({ $0 >= .zero }), timeout.map({ $0 > .zero }) != false,
            refreshAhead.map({ (0...1).contains($0) }) != false
        {
            return
        }
        throw CacheError(
            .invalidConfiguration,
            "The policy of a generator for cache \"\(cache())\" has a negative time, a timeout of zero or a share outside 0 to 1:"
                + " \(self).")
    }

    static func milliseconds(_ duration: Duration) -> Int64 {
        SystemClock.saturated(max(0, duration / .milliseconds(1)))
    }
}

/// The result of a load that says more than the value.
public struct Generated<Value> {
    package enum Outcome {
        case value(Value, EntryAttributes)
        /// A value for the callers alone.
        case unstored(Value, EntryAttributes)
        case notModified
        case absent(MaxAge)
    }

    package let outcome: Outcome

    package init(outcome: Outcome) { self.outcome = outcome }

    /// A new value.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - maxAge: The maximum age of this entry, in place of the cache's.
    ///   - cost: The cost of the value against the cost limit of memory; if nil, the size of its payload.
    ///   - extendedData: Bytes to store with the value.
    ///   - tags: The tags by which `removeAll(tagged:)` finds the entry.
    public static func value(
        _ value: Value, maxAge: MaxAge? = nil, cost: Int? = nil, extendedData: Data? = nil, tags: Set<String> = []
    ) -> Generated {
        let attributes = EntryAttributes(cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags)
        return Generated(outcome: .value(value, attributes))
    }

    /// The old value, whose age begins again; everything that is stored with it stays.
    ///
    /// If the entry was written or removed in the meantime, nothing is stored. If the closure got no old entry, the call
    /// throws ``CacheError/Code/invalidConfiguration``.
    public static var notModified: Generated { Generated(outcome: .notModified) }

    /// No value: callers get nil, and no closure runs for the key until `age` has passed or the key is written.
    ///
    /// The expired entry is removed. The absence is kept in the memory of this process, for up to 10,000 keys of a cache.
    ///
    /// - Parameter age: The time for which no closure runs. With zero nothing is remembered.
    public static func none(for age: MaxAge) -> Generated { Generated(outcome: .absent(age)) }
}

extension Generated: Sendable where Value: Sendable {}
extension Generated.Outcome: Sendable where Value: Sendable {}
