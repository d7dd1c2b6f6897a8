internal import Foundation
public import LarderLocks
public import LarderStore

extension MemoryCache {
    /// The number of entries, including expired ones that no read or sweep has removed yet.
    public var count: Int { state.withLock { $0.table.count } }

    /// A Boolean value that indicates whether there is no entry.
    public var isEmpty: Bool { count == 0 }

    /// The total cost of the entries; `Int.max` if it is more.
    public var totalCost: Int { state.withLock { $0.totalCost.clamped } }

    /// The maximum number of entries; a lower limit takes effect before the setter returns.
    ///
    /// A negative number counts as 0, at which nothing is kept.
    public var countLimit: Int {
        get { state.withLock { $0.countLimit } }
        set {
            state.withLock { $0.countLimit = Swift.max(0, newValue) }
            trim(.evicted, counts: true) { $0.isOverLimit }
        }
    }

    /// The maximum total cost of the entries; a lower limit takes effect before the setter returns.
    ///
    /// A negative number counts as 0, at which only entries without a cost are kept.
    public var costLimit: Int {
        get { state.withLock { $0.costLimit } }
        set {
            state.withLock { $0.limitCost(to: Swift.max(0, newValue)) }
            trim(.evicted, counts: true) { $0.isOverLimit }
        }
    }

    /// The number of bytes of memory that the entries take; `Int.max` if it is more.
    ///
    /// An entry takes its share of the table, in which its key and its value are inline. In addition it takes the
    /// bytes of a key that is a `String` or `Data` and does not fit inline, and its cost. In a cache with a
    /// ``byteLimit``, give the bytes that a value has outside of `MemoryLayout<Value>.stride` as its cost. Without a
    /// cost only the inline size of the value counts.
    public var totalBytes: Int { state.withLock { $0.totalBytes.clamped } }

    /// The maximum number of bytes that the entries take, as ``totalBytes`` counts them; `Int.max`, the default, is
    /// no limit.
    ///
    /// A lower limit takes effect before the setter returns. A negative number counts as 0, at which nothing is kept.
    public var byteLimit: Int {
        get { state.withLock { $0.byteLimit } }
        set {
            state.withLock { $0.limitBytes(to: Swift.max(0, newValue)) }
            trim(.evicted, counts: true) { $0.isOverLimit }
        }
    }

    /// Removes the least recently used entries until at most `count` are left; a negative number counts as 0.
    public func trim(toCount count: Int) {
        trim(.evicted) { $0.table.count > Swift.max(0, count) }
    }

    /// Removes the least recently used entries, whatever they cost, until the total cost is at most `cost`.
    public func trim(toCost cost: Int) {
        trim(.evicted) { $0.totalCost > WideSum(Swift.max(0, cost)) }
    }

    /// The maximum number of entries for which a sweep or a trim holds the lock at a time.
    static var entriesPerSlice: Int { 1024 }

    /// Removes from the least recent end while a condition is true, in batches, and releases outside the lock.
    ///
    /// - Parameter counts: A Boolean value that indicates whether a limit is the reason, which the statistics count.
    func trim(
        _ cause: RemovalCause, counts: Bool = false,
        while isTooMuch: @Sendable (borrowing BoundedTable<Key, Value>) -> Bool
    ) {
        var isDone = false
        while !isDone {
            var discards: [LRUTable<Key, Value>.Node] = []
            isDone = state.withLock { state in
                for _ in 0..<Self.entriesPerSlice {
                    guard state.table.count > 0, isTooMuch(state) else {
                        state.giveBackRoom()
                        return true
                    }
                    discards.append(state.remove(state.table.leastRecent))
                    if counts { state.counts.evictions += 1 }
                }
                return false
            }
            report(discards, cause)
        }
    }

    /// A Boolean value that indicates whether an entry can expire.
    @inlinable var canExpire: Bool { !rule.isUnlimited || hasOwnAges.load(ordering: .relaxed) }

    /// The time, by which an entry has expired; `.min`, without a look at a clock, if no entry can.
    @usableFromInline
    func now() -> Int64 { canExpire ? moment() : .min }

    func moment() -> Int64 {
        if let clock { return SystemClock.milliseconds(of: clock()) }
        return SystemClock.coarseNow()
    }

    /// Returns the last moment at which an entry that is written now is served; nil if nothing ends it.
    @usableFromInline
    func newEnd() -> Int64? {
        if rule.isUnlimited { return nil }
        let now = now()
        return rule.drawn.end(writtenAt: now, accessedAt: now, id: 0)
    }

    /// Returns a value whose age counts.
    @usableFromInline
    func agedValue(forKey key: Key, hash: UInt64) -> Value? {
        let (now, staleTime) = (now(), staleTime.load(ordering: .relaxed))
        let found = state.withLock { $0.agedValue(forKey: key, hash: hash, now: now, staleTime) }
        if let node = found.expired { report([node], .expired) }
        return found.value
    }

    /// Sets the value of a key with an age of its own; nil removes it.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cost: The cost of the entry, as in ``setValue(_:forKey:cost:)``.
    ///   - maxAge: The age of this entry in place of the cache's, sliding or not; nil for the cache's. It lasts until the key is
    ///     written again, by an `update` too. With an age of zero or less, or of not-a-number, nothing is kept, and the key's
    ///     old entry is removed.
    public func setValue(_ value: Value?, forKey key: Key, cost: Int = 0, maxAge: MaxAge?) {
        guard let value, let maxAge else { return setValue(value, forKey: key, cost: cost) }
        let now = moment()
        let rule = maxAge.isNumber ? maxAge.rule.drawn : .sinceWrite(0)
        let end = rule.end(writtenAt: now, accessedAt: now, id: 0)
        if end < now {
            removeValue(forKey: key)
        } else {
            set(value, key, cost: cost, OwnAge(rule, end: end, writtenAt: now))
        }
    }

    /// Sets a value with an age of its own.
    func set(_ value: Value, _ key: Key, cost: Int, _ own: OwnAge) {
        // Before, so that no later read takes the entry for one without an end.
        hasOwnAges.store(true, ordering: .relaxed)
        let cost = BoundedTable<Key, Value>.clamped(cost)
        let bytes = BoundedTable<Key, Value>.bytes(of: key, cost: cost) + 2 * EntryBytes.ofEnd
        setValueSlowly(value, forKey: key, hash: seed.hash(key), cost: cost, bytes: bytes, end: own.end, age: own.age)
        noteEnd(own.end)
    }

    /// Sees to it that an entry is removed soon after its end.
    @usableFromInline
    func noteEnd(_ end: Int64) {
        let end = end.addingSaturated(staleTime.load(ordering: .relaxed))
        if !timer.isNews(end) { return }
        timer.note(end: end) { [weak self] in
            guard let self, let next = sweep(keepsStale: true).nextEnd else { return }
            noteEnd(next)
        }
    }

    /// Removes every entry that has expired.
    ///
    /// - Returns: The number of removed entries.
    /// - Complexity: O(n), in batches of 1,024 under the lock.
    @discardableResult
    public func removeExpired() -> Int { sweep(keepsStale: false).count }

    /// Removes every entry that has expired, and returns their number, and when the next one does.
    ///
    /// - Parameter keepsStale: A Boolean value that indicates whether those stay that generators may still serve.
    private func sweep(keepsStale: Bool) -> (count: Int, nextEnd: Int64?) {
        if !canExpire { return (0, nil) }
        var (next, count, nextEnd): (UInt32?, Int, Int64?) = (1, 0, nil)
        state.withLock { $0.sweeps += 1 }
        while let first = next {
            // The timer follows the exact clock, behind which a read's may lag.
            let exact = clock == nil ? SystemClock.now() : now()
            let now = keepsStale ? exact.subtractingSaturated(staleTime.load(ordering: .relaxed)) : exact
            var discards: [LRUTable<Key, Value>.Node] = []
            next = state.withLock { state in
                state.removeExpired(from: first, atMost: Self.entriesPerSlice, now: now, &nextEnd, into: &discards) {
                    Int($1) < $0.ends.count ? $0.ends[Int($1)] : .max
                }
            }
            count += discards.count
            report(discards, .expired)
        }
        state.withLock { state in
            state.counts.expirations += count
            state.sweeps -= 1
            state.giveBackRoom()
        }
        return (count, nextEnd)
    }
}

/// When an entry ends that has an age of its own.
struct OwnAge: Sendable {
    var end: Int64
    /// The milliseconds, as in `BoundedTable.ages`.
    var age: Int64
}

extension OwnAge {
    init(_ rule: AgeRule, end: Int64, writtenAt now: Int64) {
        // Unlike the 0 of an entry without an own age.
        let fixed = end == .max ? .min : min(-1, now.subtractingSaturated(end))
        self.init(end: end, age: rule.slidingAge ?? fixed)
    }
}

extension BoundedTable {
    @usableFromInline
    struct Found: Sendable {
        var value: Value?
        /// The node of an expired entry, released outside the lock.
        var expired: Table.Node?
    }

    @usableFromInline
    struct Removed: Sendable {
        @usableFromInline var node: Table.Node?
        @usableFromInline var isExpired = false
        /// A Boolean value that indicates whether streams, loads or the program hear of it.
        @usableFromInline var isFollowed = false

        @inlinable
        init() {}
    }

    /// Returns a value, and removes its entry if that has expired and is not kept to be served stale.
    ///
    /// - Parameter staleTime: The milliseconds for which an expired entry is kept.
    mutating func agedValue(forKey key: Key, hash: UInt64, now: Int64, _ staleTime: Int64) -> Found {
        let found = table.locate(key, hash: hash)
        if found == 0 {
            counts.misses &+= 1
            return Found()
        }
        if isExpired(found, now: now) {
            counts.misses &+= 1
            if !isExpired(found, now: now.subtractingSaturated(staleTime)) { return Found() }
            counts.expirations &+= 1
            return Found(expired: remove(found))
        }
        counts.hits &+= 1
        let age = age(of: found)
        if age > 0 { ends[Int(found)] = now.addingSaturated(age) }
        table.promote(found)
        return Found(value: table.value(at: found))
    }

    /// Returns whether an entry has expired.
    @inlinable
    func isExpired(_ index: UInt32, now: Int64) -> Bool { Int(index) < ends.count && now > ends[Int(index)] }

    /// Removes a key.
    @inlinable
    mutating func removeValue(forKey key: Key, hash: UInt64, now: Int64) -> Removed {
        var removed = Removed()
        removed.isFollowed = isFollowed || !watches.isEmpty
        if !watches.isEmpty { noteWrite(key, hash: hash) }
        let found = table.locate(key, hash: hash)
        if found != 0 {
            removed.isExpired = isExpired(found, now: now)
            removed.node = remove(found)
        }
        return removed
    }

    /// Removes the expired entries of a slice of indices, and returns where the next slice begins; nil at the end.
    ///
    /// - Parameters:
    ///   - nextEnd: The first end of those that stay.
    ///   - endOf: Returns the last moment at which an entry is served.
    mutating func removeExpired(
        from first: UInt32, atMost count: Int, now: Int64, _ nextEnd: inout Int64?, into discards: inout [Table.Node],
        endOf: (borrowing Self, UInt32) -> Int64
    ) -> UInt32? {
        let end = UInt32(min(UInt64(first) + UInt64(count), UInt64(table.indexLimit)))
        for index in first..<max(first, end) where table.isEntry(index) {
            let end = endOf(self, index)
            if end < now { discards.append(remove(index)) } else { nextEnd = min(nextEnd ?? .max, end) }
        }
        return end < table.indexLimit ? end : nil
    }
}

/// Wakes a memory cache when the first of its entries may have expired.
///
/// There is no timer while nothing can expire. It costs a write one comparison: a later write expires later, as a rule.
@usableFromInline
final class SweepTimer: Sendable {
    /// No timer waits longer than 30 days at a time.
    private static let longestWait: Int64 = 30 * 86_400_000

    private let timekeeper: Timekeeper
    /// The pause after a sweep, in milliseconds: a share of the age.
    private let pause: Int64
    private let wakeup = Mutex<Wakeup?>(nil)
    /// The moment for which the timer waits; `.max` if it does not.
    private let due = Atomic<Int64>(.max)
    /// The moment after the pause that follows a sweep.
    private let earliest = Atomic<Int64>(.min)

    init(_ timekeeper: Timekeeper, age: Int64) {
        (self.timekeeper, pause) = (timekeeper, min(max(age / 16, 1000), 60_000))
    }

    /// Returns whether the timer has to wait for a moment before the one for which it waits.
    func isNews(_ end: Int64) -> Bool {
        max(end.addingSaturated(1), earliest.load(ordering: .relaxed)) < due.load(ordering: .relaxed)
    }

    /// Calls `sweep` soon after the moment `end`, unless the timer waits for an earlier one.
    func note(end: Int64, _ sweep: @escaping @Sendable () -> Void) {
        let now = timekeeper.now()
        let displaced = wakeup.withLock { wakeup -> Wakeup? in
            let wanted = max(end.addingSaturated(1), earliest.load(ordering: .relaxed), now)
            let moment = min(wanted, now.addingSaturated(Self.longestWait))
            guard moment < due.load(ordering: .relaxed) else { return nil }
            due.store(moment, ordering: .relaxed)
            defer {
                wakeup = timekeeper.wake(.milliseconds(moment.subtractingSaturated(now))) { [weak self] in
                    if self?.begin() == true { sweep() }
                }
            }
            return wakeup
        }
        displaced?.cancel()
    }

    private func begin() -> Bool {
        let now = timekeeper.now()
        return wakeup.withLock { wakeup in
            // A timer that was replaced while it fired.
            guard wakeup != nil else { return false }
            wakeup = nil
            earliest.store(now.addingSaturated(pause), ordering: .relaxed)
            due.store(.max, ordering: .relaxed)
            return true
        }
    }

    /// Ends the wait, until an entry is noted again.
    func cancel() {
        let displaced = wakeup.withLock { wakeup in
            due.store(.max, ordering: .relaxed)
            return wakeup.take()
        }
        displaced?.cancel()
    }
}

/// What a memory cache removes when memory gets scarce, at a warning.
public enum PressureResponse: Sendable, Hashable {
    /// The less recently used half, by count, by cost and by bytes.
    case half
    /// All entries.
    case all
    /// Nothing: the cache waits until memory is almost exhausted.
    case none
}

extension MemoryCache: PressureResponder {
    /// Releases memory now: `.warning` removes what ``pressureResponse`` says, `.critical` all.
    ///
    /// A cache created with `clearsOnMemoryPressure` does this automatically when the system asks for it: by the
    /// pressure source on Apple's systems, by the kernel's pressure stall triggers on Linux, if they can be opened.
    /// On every system, and for every cache, you can call it directly. If there is a ``memoryPressureHandler``, it is called
    /// and nothing else is done.
    ///
    /// - Parameter level: The urgency of the request.
    public func handleMemoryPressure(_ level: MemoryPressure) {
        let (handler, response) = state.withLock { ($0.pressureHandler, $0.pressureResponse) }
        if let handler { return handler(level) }
        switch (level, response) {
        case (.critical, _), (.warning, .all): removeAll(.pressure)
        case (.warning, .half):
            let (count, cost, bytes) = state.withLock { ($0.table.count, $0.totalCost, $0.totalBytes) }
            trim(.pressure) { $0.table.count > count / 2 }
            trim(.pressure) { $0.totalCost > cost.half || $0.totalBytes > bytes.half }
        case (.warning, .none): return
        }
        // Without a handler of events, memory that was given back is no matter for a log.
        if onEvent != nil { report(.memoryPressure(level), "Memory of \(described) was given back (\(level)).", .info) }
    }

    /// What a warning removes.
    public var pressureResponse: PressureResponse {
        get { state.withLock { $0.pressureResponse } }
        set { state.withLock { $0.pressureResponse = newValue } }
    }

    /// A closure that decides what to remove in place of the cache; nil, the default, leaves it to the cache.
    ///
    /// It is called with the level on the reporting thread, outside any lock, and may trim or empty the cache.
    public var memoryPressureHandler: (@Sendable (MemoryPressure) -> Void)? {
        get { state.withLock { $0.pressureHandler } }
        set {
            let old = state.withLock { state in
                defer { state.pressureHandler = newValue }
                return state.pressureHandler
            }
            _ = consume old
        }
    }
}
