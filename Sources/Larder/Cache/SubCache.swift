#if LARDER_TSAN
public import LarderTSan
public import struct Synchronization.Atomic
#else
public import Synchronization
#endif

/// What all handles on one sub-cache share: its front in memory, over the ledger of its rows.
///
/// It lives as long as one of its handles.
@usableFromInline
final class SubCache<Key: Codable & Hashable & Sendable, Value: Sendable>: LedgerFront {
    @usableFromInline let ledger: RowLedger
    @usableFromInline let keyCodec = KeyCodec<Key>()

    @usableFromInline let seed: HashSeed

    /// Guards everything in memory; no other lock is taken under it.
    @usableFromInline let front: Mutex<FrontState<Key, Value>>

    /// Whether memory may hold anything, as a hint: a read that takes it for none goes to the disk, and is right too.
    @usableFromInline let holdsCopies: Atomic<Bool>

    @inlinable var mayHoldCopies: Bool { holdsCopies.load(ordering: .relaxed) }

    /// The values that are being made.
    @usableFromInline let loads: Loads<Key, CacheEntry<Key, Value>>

    /// Those who want to know what changes.
    @usableFromInline let changes = ChangeHub<Key, Value>()

    /// The cost above which memory takes no entry.
    @usableFromInline let costLimit: Atomic<Int>

    /// The bytes outside the table above which memory takes no entry.
    @usableFromInline let outsideLimit: Atomic<Int>

    /// Waits for the next entry in memory that expires.
    @usableFromInline let expiry: ExpiryTimer

    /// The managers that have opened it, to tell them what happens.
    private let reporters = Mutex<[Reporter]>([])

    /// Follows the system's memory pressure for it.
    private let pressureLink = Mutex<PressureLink?>(nil)

    /// Follows the app into the background for it, where a handle wanted that.
    private let backgroundWatcher = Mutex<BackgroundWatcher?>(nil)

    /// Whether it gives memory back when the system runs short of it; the latest open sets it.
    let relieves = Mutex(true)

    init(ledger: RowLedger, limits: MemoryLimits, present: StorePresent) {
        self.ledger = ledger
        loads = Loads(name: ledger.name)
        costLimit = Atomic(limits.effectiveCount > 0 ? limits.effectiveCost : .max)
        outsideLimit = Atomic(limits.outsideLimit(overhead: FrontState<Key, Value>.overhead))
        expiry = ExpiryTimer(ledger.store.timekeeper)
        let seed = HashSeed()
        self.seed = seed
        holdsCopies = Atomic(present.allowsCopies && limits.effectiveCount > 0)
        front = Mutex(
            FrontState(
                seed: seed, limits: limits, present: present, revisions: ledger.store.revisions, grain: ledger.grain))
        let link = PressureLink { [self] in relieve($0) }
        pressureLink.withLock { $0 = link }
        PressureWatcher.shared.add(link)
    }

    @usableFromInline var name: String { ledger.name }

    func add(_ reporter: Reporter) {
        reporters.withLock { reporters in
            if !reporters.contains(where: { $0 === reporter }) { reporters.append(reporter) }
        }
    }

    /// What a key is stored as, for events; nil where it cannot be.
    func storedIfAny(_ key: Key) -> StoredKey? {
        do throws(CacheError) { return try keyCodec.stored(key, cache: name) } catch { return nil }
    }

    /// Tells everyone who has opened it.
    func report(
        _ kind: CacheEvent.Kind, key: StoredKey? = nil, _ message: String, _ level: LogMessage.Level = .warning,
        error: CacheError? = nil
    ) {
        let event = CacheEvent(kind, cacheName: name, key: key?.description, message: message)
        for reporter in reporters.withLock({ $0 }) { reporter.report(event, level, error: error) }
    }

    // MARK: - What the ledger tells

    package func clear(_ discards: inout Discards) {
        // Before: what comes in from now on asks for a timer again.
        expiry.cancel()
        front.withLock { $0.clear(&discards) }
        noteAllChanged(&discards)
    }

    package func moved(to present: StorePresent, _ discards: inout Discards) {
        front.withLock { front in
            // Another one may have come since.
            guard present.database >= front.database else { return }
            front.database = present.database
            front.watch = present.watch
            front.clear(&discards)
        }
        noteAllChanged(&discards)
    }

    private func noteAllChanged(_ discards: inout Discards) {
        discards.add(loads.noteClear())
        changes.noteReset(&discards)
    }

    package func clockWasSetBack(to now: Int64) { front.withLock { $0.correctAll(now: now) } }

    package func noteClear(_ discards: inout Discards) { discards.add(loads.noteClear()) }

    package func end(_ discards: inout Discards) { changes.finish(&discards) }

    package func end(for manager: ObjectIdentifier, _ reporter: AnyObject) {
        changes.finish(for: manager)
        let ended = reporters.withLock { reporters in
            let ended = reporters.filter { $0 === reporter }
            reporters.removeAll { $0 === reporter }
            return ended
        }
        // Its log is the user's, and what that holds.
        _ = consume ended
    }

    package func limitIsUnmet() {
        report(
            .limitReached,
            "Cache \"\(name)\" is over its limits on disk, and what is there is pinned or in use; unpin entries or raise"
                + " the limits.")
    }

    package func wentAway(_ victims: [RowVictim], _ cause: RemovalCause) {
        for victim in victims {
            let key = victim.key
            if victim.isExpired {
                report(.expired, key: key, "An entry of cache \"\(name)\" was over, and was removed.", .debug)
            } else if let eviction = CacheEvent.Eviction(cause) {
                report(.evicted(eviction), key: key, "An entry of cache \"\(name)\" was evicted.", .debug)
            }
        }
    }

    package func handOverUses() throws(CacheError) {
        var notes: [(key: StoredKey, use: NotedUse)] = []
        let now = ledger.store.timekeeper.now()
        for (key, use) in front.withLock({ $0.unnotedUses(now: now) }) {
            notes.append((try keyCodec.stored(key, cache: name), use))
        }
        takeOverEvicted()
        if !notes.isEmpty { ledger.note(notes) }
    }

    package func uses(of keys: [StoredKey]?) -> [StoredKey: NotedUse] {
        var uses: [StoredKey: NotedUse] = [:]
        guard mayHoldCopies else { return uses }
        guard let keys else {
            for (key, use) in front.withLock({ $0.allUses() }) {
                if let stored = storedIfAny(key) { uses[stored] = use }
            }
            return uses
        }
        for stored in keys {
            do throws(CacheError) {
                let key = try keyCodec.key(stored, cache: name)
                let hash = seed.hash(key)
                uses[stored] = front.withLock { $0.lastUse(of: key, hash: hash) }
            } catch {
                // A key that does not decode counts as not used.
            }
        }
        return uses
    }

    package func retire() {
        expiry.cancel()
        backgroundWatcher.withLock { $0 = nil }
        if let link = pressureLink.withLock({ $0.take() }) { PressureWatcher.shared.remove(ObjectIdentifier(link)) }
        do throws(CacheError) {
            try handOverUses()
        } catch {
            // A key that cannot be encoded a second time is not worth more than its place in the order.
        }
        reporters.withLock { $0 = [] }
    }

    /// Gives the ledger the uses of entries that memory let go of, so that reads of them know when they were used.
    func takeOverEvicted() {
        let (first, evicted) = front.withLock { ($0.takenUses, $0.evictedUses) }
        if evicted.isEmpty { return }
        let now = ledger.store.timekeeper.now()
        var notes: [(key: StoredKey, use: NotedUse)] = []
        for item in evicted {
            var use = item.use
            if use.accessedAt == NotedUse.unknownMoment { use.accessedAt = now }
            guard ledger.grain.isStale(item.storedAccess, age: item.age, at: use.accessedAt) else { continue }
            do throws(CacheError) {
                notes.append((try keyCodec.stored(item.key, cache: name), use))
            } catch {
                // As above.
            }
        }
        ledger.note(notes)
        let released = front.withLock { front -> [EvictedUse<Key>] in
            // Somebody else may have done the same, or everything was removed meanwhile.
            let rest = evicted.count - (front.takenUses - first)
            guard rest > 0 else { return [] }
            let old = front.evictedUses
            front.evictedUses.removeFirst(rest)
            front.takenUses += rest
            return old
        }
        _ = consume released
    }
}

// MARK: - Limits

extension SubCache {
    /// Changes what memory may hold, at once.
    func limitMemory(to limits: MemoryLimits) {
        let number = ledger.store.revisions.next()
        costLimit.store(limits.effectiveCount > 0 ? limits.effectiveCost : .max, ordering: .relaxed)
        outsideLimit.store(limits.outsideLimit(overhead: FrontState<Key, Value>.overhead), ordering: .relaxed)
        front.withLock { front in
            front.limits = limits.counted
            front.lastUse = max(front.lastUse, number)
            front.memory.countLimit = front.allowsCopies ? limits.effectiveCount : 0
            front.memory.limitCost(to: limits.effectiveCost)
            front.memory.limitBytes(to: limits.effectiveBytes)
            holdsCopies.store(front.holdsCopies, ordering: .relaxed)
        }
        trimMemory(isEviction: true) { $0.isOverLimit }
    }

    /// Lets the least recently used entries leave memory, in slices, while something is true.
    func trimMemory(
        isEviction: Bool = false,
        while isTooMuch: @Sendable (borrowing MemoryCacheState<Key, HotEntry<Value>>) -> Bool
    ) {
        var isDone = false
        while !isDone {
            var discards: [LRUTable<Key, HotEntry<Value>>.Node] = []
            isDone = front.withLock { front in
                for _ in 0..<1024 {
                    guard front.memory.table.count > 0, isTooMuch(front.memory) else {
                        front.memory.giveBackRoom()
                        return true
                    }
                    let oldest = front.memory.table.leastRecent
                    front.noteUse(at: oldest)
                    if isEviction { front.memoryEvictions += 1 }
                    discards.append(front.memory.remove(oldest))
                }
                return false
            }
        }
    }

    /// Gives memory back: the less recently used half, by count, by cost and by bytes, or all.
    private func giveBack(_ level: MemoryPressure) {
        switch level {
        case .warning:
            let (count, cost, bytes) = front.withLock {
                ($0.memory.table.count, $0.memory.totalCost, $0.memory.totalBytes)
            }
            trimMemory { $0.table.count > count / 2 || $0.totalCost > cost / 2 || $0.totalBytes > bytes / 2 }
        case .critical:
            trimMemory { _ in true }
        }
        report(.memoryPressure(level), "The memory of cache \"\(name)\" was given back (\(level)).", .info)
    }

    /// Lets everything leave memory when the app goes into the background, or no longer; the latest open says.
    func clearsInBackground(_ isWanted: Bool) {
        let watcher = isWanted ? BackgroundWatcher { [weak self] in self?.giveBack(.critical) } : nil
        let old = backgroundWatcher.withLock { current in
            defer { current = watcher }
            return current
        }
        _ = consume old
    }

    /// The same, unless its options say that pressure is none of its business.
    package func relieve(_ level: MemoryPressure) {
        if relieves.withLock({ $0 }) { giveBack(level) }
    }
}

extension CacheEvent.Eviction {
    fileprivate init?(_ cause: RemovalCause) {
        switch cause {
        case .call: return nil
        case .count: self = .count
        case .size: self = .size
        case .freeSpace: self = .freeSpace
        case .decider: self = .decider
        }
    }
}
