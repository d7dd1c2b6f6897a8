package import Foundation
package import LarderSQLite
internal import Synchronization

/// Where a write to a sub-cache finds itself.
package struct WritePlace: Sendable {
    /// The generation's id.
    package let generation: Int64
    /// The round in which what is written is true.
    package let round: UInt32
    fileprivate let binding: GenerationBinding
    /// The rows that went because they could not be read.
    fileprivate var dropped: [StoredKey] = []
    /// The files that no row names once this is committed.
    package fileprivate(set) var givenUp: [String] = []
    /// Where large payloads go.
    fileprivate let blobs: BlobFolder?
    /// Whether a write has to look what it writes over: rows may have files, or are counted.
    fileprivate let looks: Bool
    /// How many more rows there are, and how many more bytes; nothing where it does not look.
    fileprivate var added: (count: Int, size: Int64, written: Int64) = (0, 0, 0)
}

/// What the removal of a key found.
package struct TakenRow: Sendable {
    /// The row, if it was served.
    package let row: EntryRow?
    /// Whether there was one.
    package let isRemoved: Bool
}

extension RowLedger {
    /// A write to the generation, with what is to be done in memory once it is committed.
    package func ticket<R: Sendable>(
        _ scope: WriteScope, isCompound: Bool = false, isAlone: Bool = false,
        perform: @escaping @Sendable (inout Connection, inout WritePlace) throws(WriteFailure) -> R,
        apply: @escaping @Sendable (R, WritePlace) -> (any Sendable)?
    ) -> WriteTicket<(R, WritePlace)> {
        WriteTicket(
            scope, isCompound: isCompound, isAlone: isAlone,
            perform: { (connection, context) throws(WriteFailure) in
                var place = try self.place(&connection, context)
                let result = try perform(&connection, &place)
                return (result, place)
            },
            apply: { result in
                let isOther = self.state.withLock { state in
                    defer { state.binding = result.1.binding }
                    for key in result.1.dropped { state.unreadable[key] = nil }
                    if result.1.looks {
                        state.tally?.count += result.1.added.count
                        state.tally?.size += result.1.added.size
                        state.tally?.writes += 1
                    } else {
                        state.tally = nil
                    }
                    return state.binding.id != result.1.binding.id && state.binding.id != 0
                }
                // After a move, or a clear by another process, the rows are elsewhere.
                guard isOther else { return apply(result.0, result.1) }
                let cleared = self.front?.clear()
                return [cleared, apply(result.0, result.1)].compactMap { $0 }
            })
    }

    /// Does a write on this thread, and gives up the files that it displaced.
    package func run<R>(_ ticket: WriteTicket<(R, WritePlace)>) throws(CacheError) -> R {
        let (result, place) = try runKeeping(ticket)
        store.giveUp(place.givenUp)
        if place.added.count > 0 || place.added.size > 0 { holdLimitsAfterWrite() }
        store.noteWritten(place.added.written)
        return result
    }

    /// Does a write on this thread; the caller gives up the files that it displaced.
    package func runKeeping<R>(_ ticket: WriteTicket<(R, WritePlace)>) throws(CacheError) -> (R, WritePlace) {
        do throws(CacheError) {
            return try store.queue.run(ticket, store.commit)
        } catch {
            throw noted(error)
        }
    }

    /// Does a write without holding up this thread.
    package func run<R>(_ ticket: WriteTicket<(R, WritePlace)>) async throws(CacheError) -> R {
        do throws(CacheError) {
            let (result, place) = try await store.queue.run(ticket, store.commit)
            let isGreater = place.added.count > 0 || place.added.size > 0
            let needsCare = isGreater && (isOverLimits(slack: true) != false || store.policy.needsCare)
            if !place.givenUp.isEmpty || needsCare {
                try await offload { [self] () throws(CacheError) in
                    store.giveUp(place.givenUp)
                    if isGreater { holdLimitsAfterWrite() }
                    store.noteWritten(place.added.written)
                }
            } else {
                store.noteWritten(0)
            }
            return result
        } catch {
            throw noted(error)
        }
    }

    private func noted(_ error: CacheError) -> CacheError {
        guard error.code == .superseded else { return error }
        let displaced = supersede()
        _ = consume displaced
        return error
    }

    /// The generation to write to, in the transaction that writes; deletes what reads could not make sense of.
    private func place(
        _ connection: inout Connection, _ context: WriteContext
    ) throws(WriteFailure) -> WritePlace {
        let (binding, isSuperseded, unreadable, limits) = state.withLock {
            ($0.binding, $0.isSuperseded, $0.unreadable, $0.limits)
        }
        if isSuperseded { throw .refused(supersededError) }
        var place = WritePlace(
            generation: binding.id, round: context.round, binding: binding, blobs: context.present.blobs,
            looks: !limits.isNone || store.mayHaveFiles(context))
        if binding.database != context.database || binding.round != context.round || binding.id == 0 {
            place = try found(&connection, context, binding, looks: place.looks)
            // Somebody else has emptied it, and this write comes after that.
            if binding.id != 0, place.generation != binding.id { front?.noteClear() }
        }
        for (key, row) in unreadable where row.isDropped {
            _ = try connection.failing { (c) throws(SQLiteError) in
                try place.noteOld(key, &c)
                return try c.delete(place.generation, key, revision: row.revision)
            }
            place.dropped.append(key)
        }
        return place
    }

    private func found(
        _ connection: inout Connection, _ context: WriteContext, _ binding: GenerationBinding, looks: Bool
    ) throws(WriteFailure) -> WritePlace {
        let isOther = binding.database != context.database
        var live = try connection.failing { (c) throws(SQLiteError) in try c.liveGeneration(named: name) }
        if live == nil, isOther {
            // A new store stands in the place of the old one: the sub-cache goes on in it.
            var generation = declared
            generation.lineage = 0
            live = try connection.failing { (c) throws(SQLiteError) in try c.insert(generation) }
        }
        guard let live, live.isOf(version: version, codec: codec), isOther || live.root == binding.root else {
            throw .refused(supersededError)
        }
        return WritePlace(
            generation: live.id, round: context.round, binding: GenerationBinding(live, context),
            blobs: context.present.blobs, looks: looks)
    }
}

extension Connection {
    /// Runs `body`, whose failures are SQLite's.
    package mutating func failing<R>(
        _ body: (inout Connection) throws(SQLiteError) -> R
    ) throws(WriteFailure) -> R {
        do throws(SQLiteError) {
            return try body(&self)
        } catch {
            throw .database(error)
        }
    }
}

// MARK: - Writes

extension RowLedger {
    /// Writes one row; `apply` learns its revision.
    ///
    /// - Parameters:
    ///   - scope: Other than the key, where that is held by the caller.
    ///   - decide: Called where the order of writes is decided.
    package func putTicket(
        _ key: StoredKey, _ content: WrittenContent, scope: WriteScope? = nil, decide: @escaping @Sendable () -> Void,
        apply: @escaping @Sendable (Int64, UInt32) -> (any Sendable)?
    ) -> WriteTicket<(Int64, WritePlace)> {
        ticket(
            scope ?? .key(HeldKey(identity, key)),
            perform: { (connection, place) throws(WriteFailure) in
                decide()
                let revision = self.store.revisions.next(after: self.front?.lastUse ?? 0)
                do throws(SQLiteError) {
                    try self.put(key, content, revision, &connection, &place)
                    try self.noteLatest(content.row.writtenAt, &connection, place)
                } catch {
                    throw .database(error)
                }
                return revision
            },
            apply: { revision, place in
                self.state.withLock { state in
                    state.forget(key)
                    state.counts.writes += 1
                }
                return apply(revision, place.round)
            })
    }

    /// Writes many rows in one step; `apply` learns which.
    ///
    /// - Parameter admits: Whether a row is to be written, asked where the order of writes is decided.
    package func putTicket(
        _ rows: [(key: StoredKey, content: WrittenContent)], admits: @escaping @Sendable (Int) -> Bool,
        apply: @escaping @Sendable (PutRows, UInt32) -> (any Sendable)?
    ) -> WriteTicket<(PutRows, WritePlace)> {
        ticket(
            .cache(identity), isCompound: true,
            perform: { (connection, place) throws(WriteFailure) in
                // Each a number of its own, in their order.
                let revision = self.store.revisions.next(after: self.front?.lastUse ?? 0)
                var written: [Int] = []
                do throws(SQLiteError) {
                    var latest = Int64.min
                    for (index, row) in rows.enumerated() where admits(index) {
                        written.append(index)
                        try self.put(row.key, row.content, revision + Int64(index), &connection, &place)
                        latest = max(latest, row.content.row.writtenAt)
                    }
                    if !written.isEmpty { try self.noteLatest(latest, &connection, place) }
                } catch {
                    throw .database(error)
                }
                return PutRows(indices: written, revision: revision)
            },
            apply: { put, place in
                self.state.withLock { state in
                    for index in put.indices { state.forget(rows[index].key) }
                    state.counts.writes += put.indices.count
                }
                return apply(put, place.round)
            })
    }

    /// Removes keys in one step; `apply` learns which were there.
    ///
    /// - Parameters:
    ///   - scope: Other than the key or the sub-cache, where that is held by the caller.
    ///   - decide: Called where the order of writes is decided.
    package func removeTicket(
        _ keys: [StoredKey], scope: WriteScope? = nil, decide: @escaping @Sendable () -> Void,
        apply: @escaping @Sendable ([Int]) -> (any Sendable)?
    ) -> WriteTicket<([Int], WritePlace)> {
        let own: WriteScope = keys.count == 1 ? .key(HeldKey(identity, keys[0])) : .cache(identity)
        return ticket(
            scope ?? own, isCompound: keys.count > 1,
            perform: { (connection, place) throws(WriteFailure) in
                decide()
                var removed: [Int] = []
                for (index, key) in keys.enumerated() {
                    let isRemoved = try connection.failing { (c) throws(SQLiteError) in
                        try place.noteOld(key, &c)
                        return try c.delete(place.generation, key)
                    }
                    if isRemoved { removed.append(index) }
                }
                return removed
            },
            apply: { removed, _ in
                self.state.withLock { state in
                    for key in keys { state.forget(key) }
                    state.counts.removals += removed.count
                }
                return apply(removed)
            })
    }

    /// Removes a key, and gives back the row that it had, if that was served.
    package func takeTicket(
        _ key: StoredKey, _ terms: AgeTerms, accessedAt: Int64?, decide: @escaping @Sendable () -> Void,
        apply: @escaping @Sendable (Bool) -> (any Sendable)?
    ) -> WriteTicket<(TakenRow, WritePlace)> {
        let now = terms.now()
        return ticket(
            .key(HeldKey(identity, key)), isCompound: true,
            perform: { (connection, place) throws(WriteFailure) in
                decide()
                return try connection.failing { (c) throws(SQLiteError) in
                    guard let row = try c.row(place.generation, key) else {
                        return TakenRow(row: nil, isRemoved: false)
                    }
                    place.noteGone(row.facts.file, row.facts.size)
                    let seen = self.seen(key, row.facts, now: now, accessedAt: accessedAt)
                    _ = try c.delete(place.generation, key)
                    let isServed = seen.map { !$0.isExpired(terms.rule, now: now) } ?? false
                    return TakenRow(row: isServed ? row : nil, isRemoved: true)
                }
            },
            apply: { taken, _ in
                self.state.withLock { state in
                    state.forget(key)
                    if taken.isRemoved { state.counts.removals += 1 }
                }
                return apply(taken.isRemoved)
            })
    }

    /// Puts other extended data beside an entry that is served; false if there is none.
    package func extendedTicket(
        _ key: StoredKey, _ data: Data?, _ terms: AgeTerms, accessedAt: Int64?, decide: @escaping @Sendable () -> Void,
        apply: @escaping @Sendable () -> (any Sendable)?
    ) -> WriteTicket<(Bool, WritePlace)> {
        let now = terms.now()
        return ticket(
            .key(HeldKey(identity, key)), isCompound: true,
            perform: { (connection, place) throws(WriteFailure) in
                try connection.failing { (c) throws(SQLiteError) in
                    guard let facts = try c.facts(place.generation, key),
                        let seen = self.seen(key, facts, now: now, accessedAt: accessedAt),
                        !seen.isExpired(terms.rule, now: now)
                    else { return false }
                    decide()
                    let next = self.store.revisions.next(after: self.front?.lastUse ?? 0)
                    try c.setExtended(place.generation, key, data, seen: facts.revision, next: next)
                    return true
                }
            },
            apply: { isSet, _ in isSet ? apply() : nil })
    }

    /// Puts a new generation in the place of this one.
    package func clearTicket() -> WriteTicket<(Generation, WritePlace)> {
        ticket(
            .cache(identity), isCompound: true, isAlone: true,
            perform: { (connection, place) throws(WriteFailure) -> Generation in
                try connection.failing { (c) throws(SQLiteError) in
                    var generation = try c.liveGeneration(named: self.name) ?? self.declared
                    generation.lineage = place.binding.root
                    try c.retire(place.generation)
                    return try c.insert(generation)
                }
            },
            apply: { generation, place in
                self.state.withLock { state in
                    state.binding.id = generation.id
                    state.latestAt = generation.latestAt
                    state.forgetEverything()
                }
                return self.front?.clear()
            })
    }

    /// Writes down what the latest opening declared.
    package func declareTicket(_ declared: Generation) -> WriteTicket<(Void, WritePlace)> {
        ticket(
            .unheld,
            perform: { (connection, place) throws(WriteFailure) in
                try connection.failing { (c) throws(SQLiteError) in
                    try c.declare(
                        place.generation, age: declared.age, keepsExpired: declared.keepsExpired,
                        openedAt: declared.openedAt)
                }
            },
            apply: { _, _ in
                self.state.withLock { state in
                    state.declared.age = declared.age
                    state.declared.keepsExpired = declared.keepsExpired
                }
                return nil
            })
    }

    /// Empties the sub-cache in one step; the rows go in the background.
    package func clear() throws(CacheError) {
        _ = try run(clearTicket())
        store.reclaimer.begin(store)
    }

    private func put(
        _ key: StoredKey, _ content: WrittenContent, _ revision: Int64, _ connection: inout Connection,
        _ place: inout WritePlace
    ) throws(SQLiteError) {
        try place.noteOld(key, &connection)
        place.noteNew(content.row.size)
        var file: StoredFile?
        if let spilled = content.spilled, let blobs = place.blobs {
            do throws(SystemError) {
                file = try spilled.file(in: blobs)
            } catch {
                throw SQLiteError(code: .inputOutput, message: error.description, systemCode: error.number)
            }
        }
        try connection.put(place.generation, key, content.row, file: file, revision: revision)
    }

    // MARK: - The latest moment

    /// How far ahead of a write the generation's `latest_at` is moved, so that not every write has to.
    package static let latestStep: Int64 = 10_000

    /// Keeps `latest_at` at or after every write, so that an opening sees whether the clock was set back meanwhile.
    private func noteLatest(
        _ moment: Int64, _ connection: inout Connection, _ place: WritePlace
    ) throws(SQLiteError) {
        guard moment > state.withLock({ $0.latestAt }) else { return }
        let latest = moment.addingSaturated(Self.latestStep)
        try connection.setLatest(place.generation, latest)
        // If the transaction fails the row lags behind by a step at most; the first read of an entry corrects it still.
        state.withLock { $0.latestAt = max($0.latestAt, latest) }
    }
}

extension Int64 {
    /// The sum, or the greatest number.
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, isTooMuch) = addingReportingOverflow(other)
        return isTooMuch ? .max : sum
    }

    /// The difference, or the least number; the other is not negative.
    package func subtractingSaturated(_ other: Int64) -> Int64 {
        let (difference, isTooMuch) = subtractingReportingOverflow(other)
        return isTooMuch ? .min : difference
    }
}

extension WritePlace {
    /// Notes what the row of a key takes, which is about to be written over or deleted.
    mutating func noteOld(_ key: StoredKey, _ connection: inout Connection) throws(SQLiteError) {
        guard looks, let old = try connection.burden(generation, key) else { return }
        noteGone(old.file, old.size)
    }

    /// A row goes, and nothing names its file once the write is committed.
    mutating func noteGone(_ file: String?, _ size: Int64) {
        if let file { givenUp.append(file) }
        added.count -= 1
        added.size -= size
    }

    /// A row comes.
    mutating func noteNew(_ size: Int) {
        added.count += 1
        added.size += Int64(size)
        added.written += Int64(size)
    }
}

/// What a write of many rows has written.
package struct PutRows: Sendable {
    /// Which of the rows, in their order.
    package let indices: [Int]
    /// The revision that the first of all would have; the others follow it.
    package let revision: Int64
}

/// What a write puts into a row, or into a file that the row names.
package struct WrittenContent: Sendable {
    package var row: EntryContent
    package let spilled: SpilledPayload?

    package init(_ row: EntryContent, spilled: SpilledPayload? = nil) {
        self.row = row
        self.spilled = spilled
    }
}
