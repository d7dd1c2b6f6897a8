internal import LarderLocks
internal import LarderStore

/// What memory had used last is there again after an opening.
extension Cache {
    /// Returns once what ``CacheOptions/warms`` names is in memory, or cannot be read.
    ///
    /// After that ``memory`` and `observed(_:)` have the values that a first view shows. A write or a removal in the meantime wins.
    /// If the cache was not opened with that option, the call returns at once.
    public func warmed() async { await core.warmth.wait() }

    /// Reads into memory what it had used last, on another thread.
    func warm() {
        // Before the read: what changes from now on is not overwritten.
        let tickets = copies.tickets()
        Task { [self] in
            do throws(CacheError) {
                try await reading { () throws(CacheError) in
                    let found = try self.throwing("read what was used last") { () throws(StoreError) in
                        try self.rows.recentRows()
                    }
                    let now = self.rows.store.time.now()
                    let copies = found.rows.compactMap { self.copy(of: $0, at: now) }
                    self.copies.warm(copies, noted: found.noted, tickets)
                }
            } catch {
                // A read does without memory. What the note has is not known, and stays.
            }
            core.warmth.open()
        }
    }

    /// Returns the copy of a row for memory; nil if it has expired, or does not decode.
    private func copy(of row: StoredRow, at now: Int64) -> (copy: NewCopy<Key, Value>, row: RowSummary)? {
        if row.header.end < now { return nil }
        do throws(CacheError) {
            let key = try core.keyCodec.key(row.header.key, cache: name)
            let value = try codec.decode(row.payload, cache: name, key: row.header.key.name)
            let copy = copy(
                of: value, key, copies.seed.hash(key), row.header.key, payloadSize: row.payload.count,
                cost: row.header.meta.cost)
            return (copy, row.header.summary)
        } catch {
            return nil
        }
    }
}

/// The tickets of all keys at a moment.
struct WarmTickets: Sendable {
    /// For each remainder of a hash the number of changes.
    let changeCounts: [UInt32]
    let epoch: UInt32
}

extension TierState {
    /// Keeps a copy of what was used last, unless there is one, or no room, or a change came in between; it is no access.
    ///
    /// After a commit of another process in between, its first read compares it with its row.
    mutating func warm(
        _ copy: NewCopy<Key, Value>, _ row: RowSummary, _ tickets: WarmTickets, _ deferred: inout Deferred
    ) {
        let place = Int(truncatingIfNeeded: copy.hash & 255)
        guard openChanges == 0, changeCounts[place] == tickets.changeCounts[place],
            memory.table.locate(copy.key, hash: copy.hash) == 0, memory.admits(cost: copy.cost, bytes: copy.bytes),
            !memory.needsRoom(for: copy.cost, EntryBytes.units(copy.bytes))
        else { return }
        keep(copy, row, tickets.epoch, Self.writtenOnly, &deferred)
    }

    /// Returns how many of the last copies there is room for.
    func fitting(_ copies: [NewCopy<Key, Value>]) -> Int {
        var (count, cost, bytes) = (memory.table.count, memory.totalCost.clamped, memory.totalBytes.clamped)
        var fitting = 0
        for copy in copies.reversed() {
            count += 1
            cost = cost &+ min(copy.cost, .max - cost)
            bytes = bytes &+ min(memory.overhead + Int(EntryBytes.units(copy.bytes)) * 16, .max - bytes)
            if count > memory.effectiveCountLimit || cost > memory.costLimit || bytes > memory.byteLimit { break }
            fitting += 1
        }
        return fitting
    }

    /// Returns the ids of the entries that were used last, the least recent first; nil if none are wanted.
    ///
    /// Where memory has fewer than are wanted, those of the note come before: it may have been emptied.
    mutating func takeRecentIDs() -> [Int64]? {
        guard let warms, let noted = notedIDs else { return nil }
        var (ids, left, index) = ([Int64](), warms.amount, memory.table.mostRecent)
        while index != 0 {
            if case .entries = warms { left -= 1 } else { left -= memory.bytes(of: index) }
            if left < 0 { break }
            ids.append(memory.versions[Int(index)].id)
            index = memory.table.older(than: index)
        }
        if left > 0 {
            let (known, count) = (Set(ids), ids.count)
            ids += noted.reversed().filter { !known.contains($0) }
            if case .entries(let limit) = warms {
                ids = Array(ids.prefix(limit))
            } else {
                ids = Array(ids.prefix(max(count, noted.count)))
            }
        }
        ids.reverse()
        notedIDs = ids
        return ids
    }
}

/// Lets tasks wait until something is done.
final class Gate: Sendable {
    private struct State {
        var isOpen: Bool
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(isOpen: Bool) { state = Mutex(State(isOpen: isOpen)) }

    func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiters.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }
}
