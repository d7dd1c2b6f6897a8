internal import Synchronization

/// The part of a sub-cache that is in memory; see ``Cache/memory``.
///
/// What leaves memory stays on disk. A pass over it goes least recent first, by the order at its start, and shows what is
/// served now; it is no use of an entry. After a commit of another process it asks the disk whether an entry is still good,
/// and leaves it out where it cannot; the subscript gives nil instead, and never waits for the disk.
public struct MemoryTier<Key: Codable & Hashable & Sendable, Value: Sendable>: Sequence, Sendable {
    @usableFromInline let cache: Cache<Key, Value>
    private var core: SubCache<Key, Value> { cache.core }
    /// Through a manager that was closed it shows and changes nothing, as its handles do.
    private var isClosed: Bool { cache.manager.isClosed }

    @inlinable
    init(_ cache: Cache<Key, Value>) {
        self.cache = cache
    }

    /// The value of a key, where memory has one that may be served as it is; the disk is never asked.
    ///
    /// It follows the age of the handle, counts as a use, and may be called where nothing may wait, on the main thread
    /// say. Nil says nothing of what is on disk, and is no miss in the statistics.
    ///
    /// What it gives was never replaced or removed by a call that had returned, in whatever process. Therefore it is nil,
    /// too, where memory has a value of which only the disk can tell whether it is still good: after a commit of another
    /// process, and where the clock was set back, until a read of the cache has looked.
    ///
    /// - Complexity: O(1)
    @inlinable
    public func value(forKey key: Key) -> Value? {
        cache.hit(key) ?? cache.valueAtHand(forKey: key)
    }

    /// The value of a key, where memory has one that may be served as it is; see ``value(forKey:)``.
    @inlinable
    public subscript(key: Key) -> Value? { value(forKey: key) }

    /// Starts a pass, least recently used first.
    ///
    /// - Complexity: O(n) for the copy of the order, four bytes an entry.
    public func makeIterator() -> MemoryCache<Key, Value>.Iterator {
        MemoryCache.Iterator(FrontWalk(cache))
    }

    /// The keys of the entries in memory that are served now, least recently used first.
    ///
    /// - Complexity: O(n)
    public var keys: [Key] { map(\.key) }

    /// How many entries are in memory, those that are over included until they are removed.
    public var count: Int { isClosed ? 0 : core.front.withLock { $0.memory.table.count } }

    /// What their costs come to.
    public var totalCost: Int { isClosed ? 0 : core.front.withLock { Int(clamping: $0.memory.totalCost) } }

    /// The bytes of memory that the entries take; `Int.max` if they are more.
    ///
    /// Each entry counts with its place in the table, and with what its key and its value have outside of that. The size
    /// of the payload stands for the value: nobody can ask a value how much it holds. A value without references,
    /// such as an `Int` or a struct of numbers, is in the table as a whole.
    public var totalBytes: Int { isClosed ? 0 : core.front.withLock { Int(clamping: $0.memory.totalBytes) } }

    /// Whether memory has a usable value of a key, which is not used by that.
    ///
    /// After a commit of another process it looks at the disk for that, which ``value(forKey:)`` never does.
    public func contains(_ key: Key) -> Bool {
        if isClosed { return false }
        let hash = core.seed.hash(key)
        let now = cache.terms.now()
        let round = core.front.withLock { $0.watch }.round()
        guard let entry = core.front.withLock({ $0.glimpse(key, hash: hash, cache.terms.rule, now: now) }) else {
            return false
        }
        return entry.round == round || core.isCurrent(key, revision: entry.revision, cache.terms)
    }

    /// How many entries memory may hold; nil for any number.
    ///
    /// A change takes effect at once. A negative number counts as 0.
    public var countLimit: Int? {
        get { core.front.withLock { $0.limits.countLimit } }
        nonmutating set {
            change { $0.countLimit = newValue }
        }
    }

    /// What the costs of the entries in memory may come to; nil for any cost.
    ///
    /// A change takes effect at once. A negative number counts as 0.
    public var costLimit: Int? {
        get { core.front.withLock { $0.limits.costLimit } }
        nonmutating set {
            change { $0.costLimit = newValue }
        }
    }

    /// The maximum number of bytes that the entries in memory take, as ``totalBytes`` counts them; nil for any.
    ///
    /// A change takes effect at once. A negative number counts as 0, at which nothing is kept.
    public var byteLimit: Int? {
        get { core.front.withLock { $0.limits.byteLimit } }
        nonmutating set {
            change { $0.byteLimit = newValue }
        }
    }

    private func change(_ body: (inout MemoryLimits) -> Void) {
        if isClosed { return }
        var limits = core.front.withLock { $0.limits }
        body(&limits)
        core.limitMemory(to: limits)
    }

    /// Lets the least recently used entries leave memory until at most so many are left.
    public func trim(toCount count: Int) {
        let count = Swift.max(0, count)
        trim { $0.table.count > count }
    }

    /// Lets the least recently used entries leave memory until the costs of the rest come to at most so much.
    public func trim(toCost cost: Int) {
        let cost = Int128(Swift.max(0, cost))
        trim { $0.totalCost > cost }
    }

    /// Lets every entry leave memory.
    public func removeAll() {
        trim { _ in true }
    }

    private func trim(while isTooMuch: @Sendable (borrowing MemoryCacheState<Key, HotEntry<Value>>) -> Bool) {
        if !isClosed { core.trimMemory(while: isTooMuch) }
    }
}

extension Cache {
    /// The tier in memory.
    @inlinable
    public var memory: MemoryTier<Key, Value> { MemoryTier(self) }

    /// What memory has by the exact time, where one look was not enough and the disk is not to be asked.
    @usableFromInline
    func valueAtHand(forKey key: Key) -> Value? {
        manager.isClosed || !core.mayHoldCopies ? nil : core.glance(key, terms)
    }
}

extension SubCache {
    /// Whether a key's row still has the revision that memory has.
    func isCurrent(_ key: Key, revision: Int64, _ terms: CacheTerms<Value>) -> Bool {
        do throws(CacheError) {
            let stored = try keyCodec.stored(key, cache: name)
            return try ledger.facts(stored, terms.age, accessedAt: nil)?.revision == revision
        } catch {
            return false
        }
    }
}

/// A walk the front's table knows of, until this object is released.
private final class FrontWalk<Key: Codable & Hashable & Sendable, Value: Sendable>: MemoryOrder {
    let order: [UInt32]
    private let identifier: UInt64
    /// Held, so that what memory has is kept in step to the end of the walk.
    private let cache: Cache<Key, Value>
    private var core: SubCache<Key, Value> { cache.core }

    init(_ cache: Cache<Key, Value>) {
        self.cache = cache
        (identifier, order) = cache.core.front.withLock { $0.memory.table.beginWalk() }
    }

    deinit {
        core.front.withLock { $0.memory.table.endWalk(identifier) }
    }

    func firstEntry(from position: inout Int, to end: Int) -> (key: Key, value: Value)? {
        if cache.manager.isClosed {
            position = end
            return nil
        }
        let (core, terms) = (core, cache.terms)
        let now = terms.now()
        let round = core.front.withLock { $0.watch }.round()
        while true {
            let step = core.front.withLock { front in
                front.step(order, from: &position, to: end, in: identifier, terms.rule, now: now, round: round)
            }
            switch step {
            case .entry(let key, let value): return (key, value)
            case .unsure(let key, let value, let revision):
                if core.isCurrent(key, revision: revision, terms) { return (key, value) }
            case .end: return nil
            }
        }
    }
}
