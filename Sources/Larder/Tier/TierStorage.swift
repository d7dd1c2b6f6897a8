public import LarderLocks
internal import LarderSQLite
public import LarderStore

/// The memory tier of a cache: copies of values, behind one lock.
///
/// The store calls it for rows that it removes, and for the accesses that it stamps.
@usableFromInline
final class TierStorage<Key: Codable & Hashable & Sendable, Value: Sendable>: TierDelegate {
    @usableFromInline typealias State = TierState<Key, Value>

    /// Guards everything in memory.
    ///
    /// Only `CommitWatch.commits` is locked while it is held.
    @usableFromInline let state: Mutex<State>
    /// A Boolean value that indicates whether nothing is kept: then reads need not look here.
    @usableFromInline let isOff: Atomic<Bool>
    @usableFromInline let seed: HashSeed
    @usableFromInline let accesses: AccessBook
    private let name: String
    private let keyCodec = KeyCodec<Key>()
    @usableFromInline let changes: ChangeHub<Key, Value>
    let loads: Loads<StoredKey>
    private let time: StoreTime

    init(
        _ limits: MemoryLimits, _ settings: CacheSettings, name: String, store: Store, foreign: ForeignCommits,
        isSystemTime: Bool, accessGrain: Int64, remembersRemovals: Int, now: Int64
    ) {
        time = store.time
        let seed = HashSeed()
        (self.seed, self.name, accesses) = (seed, name, store.accesses)
        isOff = Atomic(limits.effectiveCount == 0)
        changes = ChangeHub(foreign)
        loads = Loads(store.loadCount) { "key \"\($0.name)\" of cache \"\(name)\"" }
        state = Mutex(
            State(
                limits, settings, seed: seed, watch: store.watch, isSystemTime: isSystemTime,
                accessGrain: accessGrain, remembersRemovals: remembersRemovals, now: now))
    }

    // MARK: Reading

    /// Keeps what a read found after a look-up, and returns false if a change came in between.
    @inlinable
    func offer(_ copy: NewCopy<Key, Value>, _ row: RowSummary, at now: Int64, _ ticket: ReadTicket) -> Bool {
        var deferred = Deferred()
        let (isKept, evicted) = state.withLock { state in
            state.counts.diskHits += 1
            let isKept = state.offer(copy, row, at: now, ticket, &deferred)
            return (isKept, state.takeEvictedAccesses())
        }
        if !evicted.isEmpty { accesses.note(servedByMemory: evicted) }
        return isKept
    }

    @inlinable
    func count(_ change: @Sendable (inout CacheCounts) -> Void) { state.withLock { change(&$0.counts) } }

    // MARK: Changes, in the order of commits

    /// Takes in what a change has written, unless its condition did not hold.
    @inlinable
    func wrote(
        _ copies: some Collection<NewCopy<Key, Value>>, _ outcome: Outcome, _ deferred: inout Deferred
    ) {
        let evicted = state.withLock { state in
            var rows = outcome.rows.makeIterator()
            for copy in copies {
                guard let written = rows.next()?.row else { continue }
                state.wrote(copy, written, at: written.writtenAt, outcome.epoch, &deferred)
            }
            state.counts.writes += outcome.rows.count
            return state.takeEvictedAccesses()
        }
        if !evicted.isEmpty { accesses.note(servedByMemory: evicted) }
        if !outcome.rows.isEmpty { observe { $0.noteUpdated(copies.map { $0.key }, &deferred) } }
    }

    /// Takes in that a key was written which memory does not keep.
    func wroteToDisk(_ key: Key, hash: UInt64, _ outcome: Outcome, _ deferred: inout Deferred) {
        let node = state.withLock { state in
            state.counts.writes += outcome.rows.count
            return state.remove(key, hash: hash)
        }
        deferred.add(node)
        observe { $0.noteUpdated(CollectionOfOne(key), &deferred) }
    }

    /// Takes in that keys were removed, whether they had rows or not.
    func removed(
        _ keys: [(key: Key, stored: StoredKey, hash: UInt64)], _ outcome: Outcome, at now: Int64,
        _ deferred: inout Deferred
    ) {
        // Most calls have one key.
        let gone = keys.count == 1 ? nil : Set(outcome.rows.map { $0.key })
        let nodes = state.withLock { state in
            state.counts.removals += outcome.rows.count
            if let gone {
                for key in keys where gone.contains(key.stored) { state.removals.note(key.hash, .removed, at: now) }
            } else if !outcome.rows.isEmpty {
                state.removals.note(keys[0].hash, .removed, at: now)
            }
            return keys.compactMap { state.remove($0.key, hash: $0.hash) }
        }
        deferred.add(nodes)
        observe {
            let gone = Set(outcome.rows.map { $0.key })
            $0.noteRemoved(keys.filter { gone.contains($0.stored) }.map { $0.key }, &deferred)
        }
    }

    /// Lets streams note a change, if there are any.
    @inlinable
    func observe(_ note: (ChangeHub<Key, Value>) -> Void) { if changes.isObserved { note(changes) } }

    /// Removes a copy whose row was deleted.
    @usableFromInline
    func removed(_ key: Key, hash: UInt64, revision: Int64) {
        let now = time.now()
        let node = state.withLock { state in
            state.noteForeign(key, hash: hash, at: now)
            return state.remove(key, hash: hash, revision: revision)
        }
        _ = consume node
    }

    /// Removes a copy whose row another process or manager has replaced.
    @usableFromInline
    func replaced(_ key: Key, hash: UInt64, revision: Int64) {
        let now = time.now()
        let node = state.withLock { state in
            state.noteForeign(key, hash: hash, at: now)
            return state.dropOutdated(key, hash: hash, revision: revision)
        }
        _ = consume node
    }

    /// Takes in that the row of a key has other attributes.
    func changed(_ key: Key, hash: UInt64, _ outcome: Outcome, _ deferred: inout Deferred) {
        guard let row = outcome.rows.first?.row else { return }
        let node = state.withLock { $0.changed(key, hash: hash, row, outcome.epoch) }
        deferred.add(node)
    }

    /// Takes in that everything was removed from memory.
    ///
    /// - Parameter now: When a call has removed all entries; nil if they are still there, or may be.
    func cleared(_ deferred: inout Deferred, removedAt now: Int64?) {
        deferred.add(
            state.withLock { state in
                if let now { state.removals.note(nil, .removedWithAll, at: now) }
                return state.removeAll()
            })
        observe { $0.noteReset(&deferred) }
    }

    /// Lets streams note that other processes may have changed anything.
    func noteForeign() {
        var deferred = Deferred()
        observe { $0.noteForeign(&deferred) }
    }

    /// Takes in that everything was removed from memory, where no lock is held.
    ///
    /// - Parameters:
    ///   - isRemoved: A Boolean value that indicates whether the entries were removed, by a call or by another version.
    ///   - isClosed: A Boolean value that indicates whether the store was closed.
    func cleared(isRemoved: Bool = false, isClosed: Bool = false) {
        if !isClosed { loads.overtake(nil) }
        var deferred = Deferred()
        cleared(&deferred, removedAt: isRemoved ? time.now() : nil)
    }

    /// Keeps nothing that reads find until ``endChange(of:)``, so that memory shows all of a change of several keys or none.
    ///
    /// A change of one key needs none of this.
    @usableFromInline
    func beginChange(of count: Int) { if count > 1 { state.withLock { $0.openChanges += 1 } } }

    @usableFromInline
    func endChange(of count: Int) { if count > 1 { state.withLock { $0.openChanges -= 1 } } }

    // MARK: The store's calls

    package func rowsAreRemoved() { state.withLock { $0.beginRemoval() } }

    package func rowsWereRemoved(_ rows: [RemovedRow]) {
        defer { state.withLock { $0.endRemoval() } }
        let now = time.now()
        var copies: [(key: Key, hash: UInt64, revision: Int64)] = []
        do throws(CacheError) {
            for row in rows {
                let key = try keyCodec.key(row.key, cache: name)
                copies.append((key, seed.hash(key), row.revision))
            }
        } catch {
            // A key that was encoded and does not decode may have a copy.
            cleared()
        }
        let nodes = state.withLock { state in
            for row in rows { state.counts.note(row.cause) }
            // By their places: pairs would be allocated.
            for place in copies.indices {
                state.removals.note(copies[place].hash, .init(rows[place].cause), at: now)
            }
            return copies.compactMap { state.remove($0.key, hash: $0.hash, revision: $0.revision) }
        }
        _ = consume nodes
        // A later write may have been noted before, so the stream looks what there is.
        var deferred = Deferred()
        observe { $0.noteUpdated(copies.map { $0.key }, &deferred) }
    }

    package func storeWasOpened(_ watch: CommitWatch, isSameFile: Bool) {
        state.withLock { $0.follow(watch) }
        changes.follow(watch)
        if !isSameFile { cleared() }
    }

    package func takeAccesses(at now: Int64) -> [Access] { state.withLock { $0.takeAccesses(at: now) } }

    /// Notes the accesses that memory has served, for reads that show when entries were accessed.
    func noteAccesses() { accesses.note(servedByMemory: takeAccesses(at: .min)) }

    package func overtakeLoads(_ overtaken: Overtaken) {
        switch overtaken {
        case .keys(let keys, let load): loads.overtake(keys, by: load)
        case .tagged(let tag): loads.overtake(tagged: tag)
        case .prefix(let prefix):
            loads.overtake { if case .text(let text) = $0 { text.utf8.starts(with: prefix.utf8) } else { false } }
        case .all: loads.overtake(nil)
        }
    }

    package func takeActivity() -> [Int64: Int64] {
        let loading = loads.counts
        return state.withLock { state in
            let counts = state.counts.with(loading)
            defer { state.takenCounts = counts }
            return counts.since(state.takenCounts)
        }.byNumber
    }

    // MARK: A warm start

    func setWarms(_ warms: WarmStart?) { state.withLock { $0.warms = warms } }

    package func takeRecentIDs() -> [Int64]? { state.withLock { $0.takeRecentIDs() } }

    /// Returns the tickets of all keys, for what is read from now on.
    func tickets() -> WarmTickets {
        state.withLock { WarmTickets(changeCounts: $0.changeCounts, epoch: $0.epoch()) }
    }

    /// Takes in what the note has named, the least recent first, as far as there is room.
    func warm(
        _ copies: [(copy: NewCopy<Key, Value>, row: RowSummary)], noted: [Int64], _ tickets: WarmTickets
    ) {
        let fitting = state.withLock { state in
            state.notedIDs = noted
            return state.fitting(copies.map { $0.copy })
        }
        var rest = copies.suffix(fitting)
        while !rest.isEmpty {
            var deferred = Deferred()
            state.withLock { state in
                for (copy, row) in rest.prefix(1024) { state.warm(copy, row, tickets, &deferred) }
            }
            rest = rest.dropFirst(1024)
        }
    }

    // MARK: Limits

    /// Changes how much is kept, at once.
    func limit(_ change: @Sendable (inout MemoryLimits) -> Void) {
        state.withLock { state in
            var limits = state.limits
            change(&limits)
            state.limits = limits.counted
            isOff.store(limits.effectiveCount == 0, ordering: .relaxed)
            state.setMemoryAge(limits.effectiveAge)
            state.memory.countLimit = limits.effectiveCount
            state.memory.limitCost(to: limits.effectiveCost)
            state.memory.limitBytes(to: limits.effectiveBytes)
        }
        trim(isEviction: true) { $0.isOverLimit }
    }

    /// Removes the copies that have expired, and returns their number.
    func removeExpired(at now: Int64) -> Int {
        var (next, count, nextEnd): (UInt32?, Int, Int64?) = (1, 0, nil)
        state.withLock { $0.memory.sweeps += 1 }
        while let first = next {
            var discards: [State.Node] = []
            next = state.withLock { state in
                state.memory.removeExpired(from: first, atMost: 1024, now: now, &nextEnd, into: &discards) {
                    $0.table.value(at: $1).end
                }
            }
            count += discards.count
        }
        state.withLock { state in
            state.memory.sweeps -= 1
            state.memory.giveBackRoom()
        }
        return count
    }

    /// Evicts the least recently used copies while a condition holds, in slices, and releases them outside the lock.
    func trim(isEviction: Bool = false, while isTooMuch: @Sendable (borrowing State.Memory) -> Bool) {
        var isDone = false
        while !isDone {
            var (discards, evicted): ([State.Node], [Access]) = ([], [])
            isDone = state.withLock { state in
                defer { evicted = state.takeEvictedAccesses() }
                return state.trim(atMost: 1024, isEviction: isEviction, &discards, while: isTooMuch)
            }
            if !evicted.isEmpty { accesses.note(servedByMemory: evicted) }
        }
    }
}
