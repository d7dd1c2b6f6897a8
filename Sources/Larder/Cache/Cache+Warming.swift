internal import LarderLocks
internal import LarderSQLite
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
        core.warmth.close()
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
                // A read does without memory.
            }
            core.warmth.open()
        }
    }

    /// Returns the copy of a row for memory; nil if it has expired, or does not decode.
    private func copy(of row: StoredRow, at now: Int64) -> (NewCopy<Key, Value>, RowSummary)? {
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

/// What a warm start shows when it offers its copies: the changes that were counted before its read.
struct WarmTickets: Sendable {
    fileprivate let changeCounts: [UInt32]
    fileprivate let epoch: UInt32

    fileprivate init(_ changeCounts: [UInt32], _ epoch: UInt32) {
        (self.changeCounts, self.epoch) = (changeCounts, epoch)
    }
}

extension TierState {
    func tickets() -> WarmTickets { WarmTickets(changeCounts, epoch()) }

    /// Keeps a copy of what was used last, unless there is one, or no room, or a change came in between; it is no access.
    mutating func warm(
        _ copy: NewCopy<Key, Value>, _ row: RowSummary, _ tickets: WarmTickets, _ deferred: inout Deferred
    ) {
        guard openChanges == 0, tickets.epoch == epoch(), tickets.epoch != CommitWatch.noEpoch,
            changeCounts[Int(truncatingIfNeeded: copy.hash & 255)]
                == tickets.changeCounts[Int(truncatingIfNeeded: copy.hash & 255)],
            memory.table.locate(copy.key, hash: copy.hash) == 0, memory.admits(cost: copy.cost, bytes: copy.bytes),
            !memory.needsRoom(for: copy.cost, EntryBytes.units(copy.bytes))
        else { return }
        keep(copy, row, tickets.epoch, Self.writtenOnly, &deferred)
    }

    /// Returns the ids of the entries that were used last, the least recent first; nil if the note has them, or none are wanted.
    mutating func takeRecentIDs() -> [Int64]? {
        guard let warms else { return nil }
        var (ids, left) = ([Int64](), warms.amount)
        for index in memory.table.order.reversed() {
            if case .entries = warms { left -= 1 } else { left -= memory.bytes(of: index) }
            if left < 0 { break }
            ids.append(memory.versions[Int(index)].id)
        }
        ids.reverse()
        // An app that gives its memory back in the background still wants it at the next start.
        if ids.isEmpty || ids == notedIDs { return nil }
        notedIDs = ids
        return ids
    }
}

/// Lets tasks wait until something is done.
final class Gate: Sendable {
    private struct State {
        var isOpen = true
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func close() { state.withLock { $0.isOpen = false } }

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
