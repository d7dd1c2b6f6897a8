public import Foundation
public import LarderLocks
public import LarderStore

/// An in-memory cache that keeps the most recently used entries, with limits on number, cost, bytes and age.
///
/// It is an exact LRU: eviction takes the least recently used entry first, inside the call that exceeded a limit. Every
/// operation on one key is O(1) and may be called from any thread. A hit is one hash, one lock, one look-up and one
/// record in a log of accesses; nothing is allocated per entry.
///
/// ```swift
/// let cache = MemoryCache<String, Data>(countLimit: 1000, costLimit: 32 << 20)
/// cache.setValue(image, forKey: "logo", cost: image.count)
/// let logo = cache["logo"]
/// ```
///
/// **Locking.** Keys are hashed before the lock is taken, and keys and values are released after it is released. The
/// clock and every closure of the caller are called outside it, so a `deinit` or a closure may use the cache. A key's
/// own `==` runs under the lock and must not call the cache.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// Guards everything that changes; no other lock is taken under it.
    @usableFromInline let state: Mutex<BoundedTable<Key, Value>>
    @usableFromInline let seed: HashSeed
    @usableFromInline let rule: AgeRule
    /// The caller's clock, or nil for the system's.
    @usableFromInline let clock: (@Sendable () -> Date)?
    private let isWatched: Bool

    /// The source of the intervals.
    let timekeeper: Timekeeper

    /// Removes expired entries; nil if no entry can expire.
    @usableFromInline let timer: SweepTimer?
    /// Held by the update that runs.
    let updates = UpdateLock()

    /// Creates an empty cache that uses the system's clock.
    ///
    /// - Parameters:
    ///   - countLimit: The maximum number of entries. A negative number counts as 0.
    ///   - costLimit: The maximum total cost of the entries. A negative number counts as 0.
    ///   - byteLimit: The maximum number of bytes that the entries take, as ``totalBytes`` counts them. A negative
    ///     number counts as 0.
    ///   - maxAge: The maximum age of an entry. `.unlimited` never reads a clock. If it is created from not-a-number,
    ///     no entry is served.
    ///   - clearsOnMemoryPressure: A Boolean value that indicates whether the cache follows the system's memory
    ///     pressure; see ``handleMemoryPressure(_:)``.
    public convenience init(
        countLimit: Int = .max, costLimit: Int = .max, byteLimit: Int = .max, maxAge: MaxAge = .unlimited,
        clearsOnMemoryPressure: Bool = true
    ) {
        self.init(
            countLimit: countLimit, costLimit: costLimit, byteLimit: byteLimit, maxAge: maxAge,
            clearsOnMemoryPressure: clearsOnMemoryPressure, seed: HashSeed(), injectedClock: nil)
    }

    /// Creates an empty cache that uses a clock of the caller.
    ///
    /// - Parameters:
    ///   - countLimit: The maximum number of entries. A negative number counts as 0.
    ///   - costLimit: The maximum total cost of the entries. A negative number counts as 0.
    ///   - byteLimit: The maximum number of bytes that the entries take, as ``totalBytes`` counts them. A negative
    ///     number counts as 0.
    ///   - maxAge: The maximum age of an entry. If it is created from not-a-number, no entry is served.
    ///   - clearsOnMemoryPressure: A Boolean value that indicates whether the cache follows the system's memory
    ///     pressure.
    ///   - clock: Called outside the lock by each call that needs the time; never if the age is `.unlimited`.
    public convenience init(
        countLimit: Int = .max, costLimit: Int = .max, byteLimit: Int = .max, maxAge: MaxAge = .unlimited,
        clearsOnMemoryPressure: Bool = true, clock: @escaping @Sendable () -> Date
    ) {
        self.init(
            countLimit: countLimit, costLimit: costLimit, byteLimit: byteLimit, maxAge: maxAge,
            clearsOnMemoryPressure: clearsOnMemoryPressure, seed: HashSeed(), injectedClock: clock)
    }

    /// Creates a cache with a given hash seed and timekeeper, for tests.
    package init(
        countLimit: Int = .max, costLimit: Int = .max, byteLimit: Int = .max, maxAge: MaxAge,
        clearsOnMemoryPressure: Bool, seed: HashSeed, injectedClock: (@Sendable () -> Date)?,
        timekeeper: Timekeeper? = nil
    ) {
        self.seed = seed
        // An initializer that cannot throw treats an age that is no number as one with which no entry is served.
        let rule = maxAge.isNumber ? maxAge.rule : MaxAge.seconds(0).rule
        self.rule = rule
        clock = injectedClock
        state = Mutex(
            BoundedTable(
                seed: seed, countLimit: Swift.max(0, countLimit), costLimit: Swift.max(0, costLimit),
                byteLimit: Swift.max(0, byteLimit), sides: rule.isUnlimited ? 0 : EntryBytes.ofEnd))
        let timekeeper = timekeeper ?? Timekeeper(clock: injectedClock)
        self.timekeeper = timekeeper
        timer =
            switch rule {
            case .unlimited: nil
            case .until: SweepTimer(timekeeper, age: 0)
            case .sinceWrite(let age), .sinceAccess(let age): SweepTimer(timekeeper, age: age)
            }
        isWatched = clearsOnMemoryPressure
        if isWatched { PressureWatcher.shared.add(self) }
    }

    deinit {
        if isWatched { PressureWatcher.shared.remove(ObjectIdentifier(self)) }
        timer?.cancel()
    }

    /// The value of a key; setting nil removes the entry.
    ///
    /// Reading makes the entry the most recently used one. A value set here has the cost 0.
    @inlinable
    public subscript(key: Key) -> Value? {
        get { value(forKey: key) }
        set { setValue(newValue, forKey: key) }
    }

    /// Returns the value of a key, and makes its entry the most recently used one.
    ///
    /// An expired entry is removed, and the call returns nil.
    @inlinable
    public func value(forKey key: Key) -> Value? {
        let hash = seed.hash(key)
        if rule.isUnlimited { return state.withLock { $0.value(forKey: key, hash: hash) } }
        return agedValue(forKey: key, hash: hash)
    }

    /// Sets the value of a key, and makes its entry the most recently used one; nil removes it.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cost: The cost of the entry, clamped to 0 to 2^53: its share of ``costLimit``, and the bytes that the
    ///     value has outside of its inline size. A value costlier than the whole limit, or larger than the whole
    ///     ``byteLimit``, is not kept and evicts nothing, and the key's old entry is removed.
    /// - Complexity: O(1), and O(n) in the number of entries it evicts.
    @inlinable
    public func setValue(_ value: Value?, forKey key: Key, cost: Int = 0) {
        guard let value else {
            removeValue(forKey: key)
            return
        }
        let hash = seed.hash(key)
        let cost = BoundedTable<Key, Value>.clamped(cost)
        let bytes = BoundedTable<Key, Value>.bytes(of: key, cost: cost)
        let end = rule.isUnlimited ? nil : newEnd()
        // The replaced or evicted objects are released when this call returns, outside the lock.
        let displaced = state.withLock {
            $0.setValueQuickly(value, forKey: key, hash: hash, cost: cost, bytes: bytes, end: end)
        }
        if displaced == nil { setValueEvicting(value, forKey: key, hash: hash, cost: cost, bytes: bytes, end: end) }
        if let end { noteEnd(end) }
    }

    /// Sets a value that may have to evict more than one entry.
    @usableFromInline
    func setValueEvicting(_ value: Value, forKey key: Key, hash: UInt64, cost: Int, bytes: Int, end: Int64?) {
        var discards: [LRUTable<Key, Value>.Node] = []
        let displaced = state.withLock {
            $0.setValue(value, forKey: key, hash: hash, cost: cost, bytes: bytes, end: end, into: &discards)
        }
        _ = consume displaced
    }

    /// Returns whether the key has an entry that has not expired, without changing its place in the order.
    public func contains(_ key: Key) -> Bool {
        let hash = seed.hash(key)
        let now = now()
        return state.withLock { state in
            let found = state.table.locate(key, hash: hash)
            return found != 0 && !state.isExpired(found, now: now)
        }
    }

    /// Removes a key, and returns its value, or nil if there is none or it has expired.
    @inlinable
    @discardableResult
    public func removeValue(forKey key: Key) -> Value? {
        let hash = seed.hash(key)
        let now = now()
        let removed = state.withLock { $0.removeValue(forKey: key, hash: hash, now: now) }
        return removed.isExpired ? nil : removed.node?.value
    }

    /// Removes all entries, and releases their memory.
    ///
    /// - Complexity: O(n) for the release of the values, O(1) under the lock.
    public func removeAll() {
        // Cancelled before: entries that are set from now on start a timer again.
        timer?.cancel()
        let emptied = state.withLock { $0.removeAll() }
        _ = consume emptied
    }
}
