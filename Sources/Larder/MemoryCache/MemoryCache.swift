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
/// own `==` and `hash(into:)` run under locks and must not call the cache.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// Guards everything that changes; no other lock is taken under it.
    @usableFromInline let state: Mutex<BoundedTable<Key, Value>>
    @usableFromInline let seed: HashSeed
    @usableFromInline let rule: AgeRule
    /// The caller's clock, or nil for the system's.
    @usableFromInline let clock: (@Sendable () -> Date)?
    /// A Boolean value that indicates whether an entry had an age of its own.
    @usableFromInline let hasOwnAges = Atomic(false)
    /// The milliseconds for which an expired entry stays, for generators that may serve it stale.
    let staleTime = Atomic<Int64>(0)
    /// The program's closure that hears of values that leave.
    let onRemoval: OnRemoval?
    /// The program's closure that gets what no call can report; nil for the standard log.
    let onEvent: OnEvent?
    private let isWatched: Bool
    private let background = Mutex<BackgroundWatcher?>(nil)

    /// The source of the intervals.
    let timekeeper: Timekeeper

    /// Removes expired entries.
    @usableFromInline let timer: SweepTimer
    /// Held by the update that runs.
    let updates = UpdateLock()
    /// The loads that run.
    let loads = Loads<Key>(LoadCount()) { "key \"\($0)\" of a memory cache" }
    /// The streams of changes.
    package let hub = ChangeHub<Key, Value>()
    /// The snapshots that were loaded or saved, by path, with the numbers of their last saves.
    ///
    /// Held while a file is replaced, so that no older one replaces a newer one.
    let snapshots = Mutex<[String: Int]>([:])
    let lastSave = Atomic(0)

    /// Hears of a value that has left the cache.
    public typealias OnRemoval = @Sendable (Key, Value, RemovalCause) -> Void

    /// Gets what no call can report.
    public typealias OnEvent = @Sendable (CacheEvent) -> Void

    /// Creates an empty cache.
    ///
    /// - Parameters:
    ///   - countLimit: The maximum number of entries. A negative number counts as 0.
    ///   - costLimit: The maximum total cost of the entries. A negative number counts as 0.
    ///   - byteLimit: The maximum number of bytes that the entries take, as ``totalBytes`` counts them. A negative
    ///     number counts as 0.
    ///   - maxAge: The maximum age of an entry. With `.unlimited` no clock is read until an entry has an age of its own. If it
    ///     is created from not-a-number, no entry is served.
    ///   - clearsOnMemoryPressure: A Boolean value that indicates whether the cache follows the system's memory
    ///     pressure; see ``handleMemoryPressure(_:)``.
    ///   - pressureResponse: What a warning removes.
    ///   - clearsInBackground: A Boolean value that indicates whether the cache is emptied when the app goes into the
    ///     background, on Apple's platforms.
    ///   - clock: Called outside the lock by each call that needs the time; nil for the system's clock.
    ///   - onRemoval: Called once for each value that leaves, after it has left, with no lock held, on the thread whose call
    ///     displaced it, or a timer's. It may use the cache; inside the body of an `update` it may not update the same key. Calls of several threads may come in another order than the
    ///     removals. Nothing is called when the cache itself is released.
    ///   - onEvent: Gets what no call can report: refreshes, saves and items of a snapshot that fail, and memory that was given back. By
    ///     default failures are written to ``LogMessage/standardLog``. It is called on any thread, with no lock held.
    public convenience init(
        countLimit: Int = .max, costLimit: Int = .max, byteLimit: Int = .max, maxAge: MaxAge = .unlimited,
        clearsOnMemoryPressure: Bool = true, pressureResponse: PressureResponse = .half,
        clearsInBackground: Bool = false,
        clock: (@Sendable () -> Date)? = nil, onRemoval: OnRemoval? = nil, onEvent: OnEvent? = nil
    ) {
        self.init(
            countLimit: countLimit, costLimit: costLimit, byteLimit: byteLimit, maxAge: maxAge,
            clearsOnMemoryPressure: clearsOnMemoryPressure, pressureResponse: pressureResponse,
            clearsInBackground: clearsInBackground, onRemoval: onRemoval, onEvent: onEvent, seed: HashSeed(),
            injectedClock: clock)
    }

    /// Creates a cache with a given hash seed and timekeeper, for tests.
    package init(
        countLimit: Int = .max, costLimit: Int = .max, byteLimit: Int = .max, maxAge: MaxAge,
        clearsOnMemoryPressure: Bool, pressureResponse: PressureResponse = .half, clearsInBackground: Bool = false,
        onRemoval: OnRemoval? = nil, onEvent: OnEvent? = nil, seed: HashSeed, injectedClock: (@Sendable () -> Date)?,
        timekeeper: Timekeeper? = nil
    ) {
        self.seed = seed
        // An initializer that cannot throw treats an age that is no number as one with which no entry is served.
        let rule = maxAge.isNumber ? maxAge.rule : MaxAge.seconds(0).rule
        (self.rule, self.onRemoval, self.onEvent, clock) = (rule, onRemoval, onEvent, injectedClock)
        var table = BoundedTable<Key, Value>(
            seed: seed, countLimit: Swift.max(0, countLimit), costLimit: Swift.max(0, costLimit),
            byteLimit: Swift.max(0, byteLimit), sides: rule.isUnlimited ? 0 : EntryBytes.ofEnd)
        table.isFollowed = onRemoval != nil
        table.pressureResponse = pressureResponse
        let age: Int64
        (table.usualAge, age) =
            switch rule {
            case .unlimited, .until: (0, 0)
            case .sinceWrite(let age), .jittered(let age, _): (0 - age, age)
            case .sinceAccess(let age): (age, age)
            }
        state = Mutex(table)
        let timekeeper = timekeeper ?? Timekeeper(clock: injectedClock)
        self.timekeeper = timekeeper
        timer = SweepTimer(timekeeper, age: age)
        isWatched = clearsOnMemoryPressure
        if isWatched { PressureWatcher.ofProcess.add(self) }
        if clearsInBackground {
            background.withLock { $0 = BackgroundWatcher { [weak self] in self?.removeAll(.removed) } }
        }
    }

    deinit {
        if isWatched { PressureWatcher.ofProcess.remove(ObjectIdentifier(self)) }
        timer.cancel()
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
        if canExpire { return agedValue(forKey: key, hash: hash) }
        return state.withLock { $0.value(forKey: key, hash: hash) }
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
        if displaced == nil { setValueSlowly(value, forKey: key, hash: hash, cost: cost, bytes: bytes, end: end) }
        if let end { noteEnd(end) }
    }

    /// Sets a value that may have to evict more than one entry, and tells of it.
    ///
    /// - Parameter age: The entry's own age, as in `BoundedTable.ages`.
    @usableFromInline
    func setValueSlowly(
        _ value: Value, forKey key: Key, hash: UInt64, cost: Int, bytes: Int, end: Int64?, age: Int64? = nil
    ) {
        var discards: [LRUTable<Key, Value>.Node] = []
        let displaced = state.withLock { state in
            if age != nil { state.isFollowed = true }
            return state.setValue(
                value, forKey: key, hash: hash, cost: cost, bytes: bytes, end: end, age: age, into: &discards)
        }
        reportWrites(of: CollectionOfOne(key), CollectionOfOne(displaced), evicted: discards)
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
        if removed.isFollowed { reportRemoval(of: key, removed) }
        return removed.isExpired ? nil : removed.node?.value
    }

    /// Removes all entries, and releases their memory.
    ///
    /// - Complexity: O(n) for the release of the values, O(1) under the lock.
    public func removeAll() { removeAll(.removed) }

    func removeAll(_ cause: RemovalCause) {
        // Cancelled before: entries that are set from now on start a timer again.
        timer.cancel()
        let emptied = EmptiedTable(state.withLock { $0.removeAll() })
        reportClear(emptied, cause)
    }
}

extension MemoryCache {
    /// Sets many values in one step: a reader sees all of them or none.
    ///
    /// If keys are equal, the last value counts. The values have the cost 0, as in the subscript.
    ///
    /// - Complexity: O(n) under the lock. The sequence is iterated and its keys are hashed before that.
    public func setValues(_ values: some Sequence<(Key, Value)>) {
        set(values.map { (key: $0.0, value: $0.1, hash: seed.hash($0.0)) })
    }

    /// Sets many values in one step: a reader sees all of them or none.
    ///
    /// - Complexity: O(n) under the lock.
    public func setValues(_ values: [Key: Value]) {
        set(values.map { (key: $0.key, value: $0.value, hash: seed.hash($0.key)) })
    }

    /// Returns the values of many keys as they are at one moment; keys without a value are left out.
    ///
    /// The entries become the most recently used ones, in the order of the keys.
    ///
    /// - Complexity: O(n) under the lock.
    public func values(forKeys keys: some Sequence<Key>) -> [Key: Value] {
        let wanted = keys.map { (key: $0, hash: seed.hash($0)) }
        let canExpire = canExpire
        let (now, staleTime) = (now(), staleTime.load(ordering: .relaxed))
        var found: [(Key, Value)] = []
        found.reserveCapacity(wanted.count)
        var expired: [LRUTable<Key, Value>.Node] = []
        state.withLock { state in
            for (key, hash) in wanted {
                if !canExpire {
                    if let value = state.value(forKey: key, hash: hash) { found.append((key, value)) }
                } else {
                    let read = state.agedValue(forKey: key, hash: hash, now: now, staleTime)
                    if let value = read.value { found.append((key, value)) }
                    if let node = read.expired { expired.append(node) }
                }
            }
        }
        report(expired, .expired)
        return Dictionary(found) { first, _ in first }
    }

    /// Removes many keys in one step; keys without an entry are ignored.
    ///
    /// - Complexity: O(n) under the lock.
    public func removeValues(forKeys keys: some Sequence<Key>) {
        let (unwanted, now) = (keys.map { (key: $0, hash: seed.hash($0)) }, now())
        let removed = state.withLock { state in
            unwanted.map { state.removeValue(forKey: $0.key, hash: $0.hash, now: now) }
        }
        if removed.contains(where: \.isFollowed) { reportRemovals(of: unwanted.map { $0.key }, removed) }
    }

    private func set(_ values: [(key: Key, value: Value, hash: UInt64)]) {
        let end = newEnd()
        var discards: [LRUTable<Key, Value>.Node] = []
        var displaced: [Displaced<Key, Value>] = []
        displaced.reserveCapacity(values.count)
        let isFollowed = state.withLock { state in
            for (key, value, hash) in values {
                let bytes = BoundedTable<Key, Value>.bytes(of: key, cost: 0)
                displaced.append(
                    state.setValue(
                        value, forKey: key, hash: hash, cost: 0, bytes: bytes, end: end, into: &discards))
            }
            return state.isFollowed || !state.watches.isEmpty
        }
        if isFollowed { reportWrites(of: values.map { $0.key }, displaced, evicted: discards) }
        if let end, !values.isEmpty { noteEnd(end) }
    }

    /// Changes the value of a key in one step: no other `update` of the cache runs between the read and the write.
    ///
    /// The body is called exactly once, outside the lock: the cache stays accessible, also for the body. It receives nil
    /// if there is no value, and removes the entry by setting nil. If it throws, nothing changes. The entry keeps its
    /// cost, and has the age of the cache. A plain write, removal or `removeAll` of the key in the meantime, the body's own included, counts as the
    /// later write: it is kept, and the result of the body is discarded.
    ///
    /// Updates wait for each other. Replaced values are released after the update, so their `deinit` may update the key
    /// too. Those of an update inside a body are released inside the outer one.
    ///
    /// - Warning: An update of the same key from inside the body traps. A body that waits for another thread's update of
    ///   the cache waits forever.
    @discardableResult
    public func update<R>(_ key: Key, _ body: (inout Value?) throws -> R) rethrows -> R {
        let hash = seed.hash(key)
        // Outside the lock of updates, which a deinit that updates the key has to pass too.
        var remains = UpdateRemains<Key, Value>()
        defer { withExtendedLifetime(remains) {} }
        let result = try updates.pass {
            let now = now()
            let (watch, old, cost) = state.withLock { $0.beginUpdate(key, hash: hash, now: now) }
            (remains.old, remains.value) = (old, old)
            do {
                let result = try body(&remains.value)
                let end = newEnd()
                state.withLock { state in
                    state.finishUpdate(watch, cost: cost, end: end, now: now, &remains)
                }
                if let end { noteEnd(end) }
                return result
            } catch {
                remains.watches = state.withLock { $0.endWatch(watch) }
                throw error
            }
        }
        if let removed = remains.removed {
            reportRemoval(of: key, removed)
        } else if remains.isWritten {
            reportWrites(of: CollectionOfOne(key), CollectionOfOne(remains.displaced), evicted: remains.discards)
        }
        return result
    }
}

/// The objects that an update may hold last, and releases at its end.
private struct UpdateRemains<Key: Hashable & Sendable, Value: Sendable> {
    var old: Value?
    /// The value as the body left it, which a later write or an error may have made void.
    var value: Value?
    var displaced = Displaced<Key, Value>()
    var discards: [LRUTable<Key, Value>.Node] = []
    var watches: [KeyWatch<Key>] = []
    var isWritten = false
    var removed: BoundedTable<Key, Value>.Removed?
}

extension BoundedTable {
    /// Returns the watch of an update's key, and the value with which its body starts.
    mutating func beginUpdate(
        _ key: Key, hash: UInt64, now: Int64
    ) -> (watch: Int, value: Value?, cost: Int) {
        precondition(
            !watches.isUpdating(key, hash: hash),
            "MemoryCache.update was called from inside the update of the same key, and would wait for itself.")
        let watch = watch(CollectionOfOne((key: key, hash: hash)), isUpdate: true)
        let found = table.locate(key, hash: hash)
        if found == 0 || isExpired(found, now: now) { return (watch, nil, 0) }
        return (watch, table.value(at: found), cost(of: found))
    }

    /// Writes the result of an update's body, unless there is a later write already.
    fileprivate mutating func finishUpdate(
        _ watch: Int, cost: Int, end: Int64?, now: Int64, _ remains: inout UpdateRemains<Key, Value>
    ) {
        remains.watches = endWatch(watch)
        guard let watch = remains.watches.first, !watch.isWritten else { return }
        if let value = remains.value {
            remains.isWritten = true
            remains.displaced = setValue(
                value, forKey: watch.key, hash: watch.hash, cost: cost, bytes: Self.bytes(of: watch.key, cost: cost),
                end: end, into: &remains.discards)
        } else {
            remains.removed = removeValue(forKey: watch.key, hash: watch.hash, now: now)
        }
    }
}

/// Lets one update of a memory cache run at a time.
///
/// Updates that its body makes run inside it.
final class UpdateLock: Sendable {
    /// Held while the body runs, which is the caller's code; the cache's own lock is not held then.
    private let mutex = Mutex(())
    /// The thread inside, or 0: only a thread that is inside can find its own number here.
    private let owner = Atomic<UInt>(0)

    func pass<R>(_ body: () throws -> R) rethrows -> R {
        let thread = CurrentThread.identity
        if owner.load(ordering: .relaxed) == thread { return try body() }
        return try mutex.withLock { _ throws(any Error) in
            owner.store(thread, ordering: .relaxed)
            defer { owner.store(0, ordering: .relaxed) }
            return try body()
        }
    }
}

extension MemoryCache {
    /// Traps with a message if an invariant does not hold; release builds omit the check.
    ///
    /// - Complexity: O(n), under the lock.
    package func checkInvariants() {
        #if DEBUG
        state.withLock { state in
            state.table.checkInvariants()
            state.checkBesides(hasEnds: !rule.isUnlimited)
        }
        #endif
    }

    /// Returns the number of chunks that a look-up of this key looks at.
    package func probeCount(_ key: Key) -> Int {
        let hash = seed.hash(key)
        return state.withLock { $0.table.probeCount(key, hash: hash) }
    }

    /// The number of keys that closures decide on.
    package var watchedKeyCount: Int { state.withLock { $0.watches.count } }

    /// The number of callers that wait for loads.
    package var waitingCallers: Int { loads.waitingCount }

    /// The capacity of the table, in entries.
    package var capacity: Int { state.withLock { Int($0.table.nodeCapacity) - 1 } }
}

#if DEBUG
extension BoundedTable {
    func checkBesides(hasEnds: Bool) {
        var total = WideSum(0)
        for index in table.order {
            total = total + WideSum(cost(of: index))
            precondition(!hasEnds || Int(index) < ends.count, "An entry has no end of its age.")
        }
        precondition(total == totalCost, "The total cost is not the sum of the costs.")
        precondition(costs.reduce(WideSum(0)) { $0 + WideSum($1) } == total, "A cost belongs to no entry.")
        var held = 0
        for index in 1..<max(1, table.indexLimit) where table.isEntry(index) { held += Int(units(of: index)) }
        precondition(held == totalUnits, "The total of bytes is not that of the entries.")
        precondition(units.reduce(0) { $0 + Int($1) } == held, "Bytes belong to no entry.")
        precondition(!isOverLimit, "A limit is exceeded.")
        for index in hints.indices where !hints[index].isNone {
            precondition(table.isEntry(UInt32(index)), "A refresh time belongs to no entry.")
        }
    }
}
#endif
