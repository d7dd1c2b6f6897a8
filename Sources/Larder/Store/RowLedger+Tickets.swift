internal import Foundation
internal import LarderSQLite
internal import Synchronization

/// The writes, each with what it changes in memory.
extension RowLedger {
    /// Writes one row; `apply` learns its revision.
    ///
    /// - Parameters:
    ///   - scope: Other than the key, where that is held by the caller.
    ///   - decide: Called where the order of writes is decided.
    @usableFromInline
    package func putTicket(
        _ key: StoredKey, _ content: WrittenContent, scope: WriteScope?,
        decide: @escaping @Sendable (inout WritePlace) -> Void,
        apply: @escaping @Sendable (Int64, UInt32) -> (any Sendable)?
    ) -> WriteTicket<(Int64, WritePlace)> {
        let put = RowPut(self, key, content, decide: decide, apply: apply)
        let pages = content.pages
        return WriteTicket(scope ?? .key(HeldKey(identity, key)), adding: pages, put) { put.result }
    }

    /// Writes many rows in one step; `apply` learns which.
    ///
    /// - Parameter admits: Whether a row is to be written, asked where the order of writes is decided.
    package func putTicket(
        _ rows: [(key: StoredKey, content: WrittenContent)],
        admits: @escaping @Sendable (Int, inout WritePlace) -> Bool,
        apply: @escaping @Sendable (PutRows, UInt32) -> (any Sendable)?
    ) -> WriteTicket<(PutRows, WritePlace)> {
        ticket(
            .cache(identity), isCompound: true, adding: .max,
            perform: { (connection, place) throws(WriteFailure) in
                // Each a number of its own, in their order.
                let revision = self.store.revisions.next(after: self.front?.lastUse ?? 0)
                var written: [Int] = []
                do throws(SQLiteError) {
                    for (index, row) in rows.enumerated() where admits(index, &place) {
                        written.append(index)
                        try self.put(row.key, row.content, revision + Int64(index), &connection, &place)
                    }
                } catch {
                    throw .database(error)
                }
                return PutRows(indices: written, revision: revision)
            },
            apply: { put, place in
                self.state.withLock { state in
                    for index in put.indices {
                        state.forget(rows[index].key)
                        state.leastWritten = min(state.leastWritten, rows[index].content.row.writtenAt)
                    }
                    if let last = put.indices.last { state.newest = max(state.newest, put.revision + Int64(last)) }
                    state.counts.writes += put.indices.count
                }
                for row in put.indices.map({ rows[$0].content.row }) {
                    self.noteEnd(writtenAt: row.writtenAt, age: row.age)
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
        _ keys: [StoredKey], scope: WriteScope? = nil, decide: @escaping @Sendable (inout WritePlace) -> Void,
        apply: @escaping @Sendable ([Int]) -> (any Sendable)?
    ) -> WriteTicket<([Int], WritePlace)> {
        let own: WriteScope = keys.count == 1 ? .key(HeldKey(identity, keys[0])) : .cache(identity)
        return ticket(
            scope ?? own, isCompound: keys.count > 1,
            perform: { (connection, place) throws(WriteFailure) in
                decide(&place)
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
        _ key: StoredKey, _ terms: AgeTerms, accessedAt: Int64?, decide: @escaping @Sendable (inout WritePlace) -> Void,
        apply: @escaping @Sendable (Bool) -> (any Sendable)?
    ) -> WriteTicket<(TakenRow, WritePlace)> {
        let now = terms.now()
        return ticket(
            .key(HeldKey(identity, key)), isCompound: true,
            perform: { (connection, place) throws(WriteFailure) in
                decide(&place)
                return try connection.failing { (c) throws(SQLiteError) in
                    guard let row = try c.row(place.generation, key) else {
                        return TakenRow(row: nil, isRemoved: false)
                    }
                    place.noteGone(row.facts.file, row.facts.size)
                    let seen = self.seenInTurn(key, row.facts, terms.rule, since: now, accessedAt: accessedAt)
                    _ = try c.delete(place.generation, key)
                    let isServed = seen.map { !$0.facts.isExpired(terms.rule, now: $0.moment) } ?? false
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

    /// Changes columns of an entry that is served, and leaves its payload; the new revision, or nil if there is none.
    ///
    /// - Parameters:
    ///   - isWrite: Whether the entry counts as written, for the order of use.
    ///   - decide: Called where the order of writes is decided.
    package func changeTicket(
        _ key: StoredKey, _ terms: AgeTerms, accessedAt: Int64?, isWrite: Bool,
        _ change: @escaping @Sendable (inout SealedColumns) -> Void,
        decide: @escaping @Sendable (inout WritePlace) -> Void,
        apply: @escaping @Sendable () -> (any Sendable)?
    ) -> WriteTicket<(Int64?, WritePlace)> {
        let now = terms.now()
        return ticket(
            .key(HeldKey(identity, key)), isCompound: true, adding: .max,
            perform: { (connection, place) throws(WriteFailure) -> Int64? in
                let changed = try connection.failing { (c) throws(SQLiteError) -> (next: Int64, size: Int64)? in
                    guard let facts = try c.facts(place.generation, key),
                        let seen = self.seenInTurn(key, facts, terms.rule, since: now, accessedAt: accessedAt),
                        !seen.facts.isExpired(terms.rule, now: seen.moment)
                    else { return nil }
                    decide(&place)
                    let next = self.store.revisions.next(after: self.front?.lastUse ?? 0)
                    let size = try c.change(
                        place.generation, key, seen: facts.revision, next: next, isWrite: isWrite,
                        atMost: self.largestEntry.load(ordering: .relaxed), change)
                    if let new = try c.burden(place.generation, key) {
                        place.noteResized(by: new.size - facts.size)
                        if facts.isPinned, !new.isPinned { place.mayUnpin = true }
                    }
                    return (next, size)
                }
                guard let changed else { return nil }
                do throws(CacheError) {
                    try self.checkSize(changed.size, of: key)
                } catch {
                    throw .refused(error)
                }
                return changed.next
            },
            apply: { revision, _ in
                guard let revision else { return nil }
                self.state.withLock { state in
                    // Limits spare it, as any entry that was just written.
                    state.newest = max(state.newest, revision)
                    state.forget(key)
                }
                return apply()
            })
    }

    /// Puts a new generation in the place of this one; the result has the id of the old one, too.
    package func clearTicket() -> WriteTicket<((new: Generation, old: Int64), WritePlace)> {
        ticket(
            .cache(identity), isCompound: true, isAlone: true,
            perform: { (connection, place) throws(WriteFailure) -> (new: Generation, old: Int64) in
                try connection.failing { (c) throws(SQLiteError) in
                    var generation = try c.liveGeneration(named: self.name) ?? self.declared
                    generation.lineage = place.binding.root
                    try c.retire(place.generation)
                    return (try c.insert(generation), place.generation)
                }
            },
            apply: { result, place in
                let generation = result.new
                self.state.withLock { state in
                    state.binding.id = generation.id
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

    /// Empties the cache in one step; the rows are reclaimed in the background.
    ///
    /// - Returns: The number of rows that there were.
    package func clear() throws(CacheError) -> Int {
        let old = try run(clearTicket()).old
        // Of rows that no write changes any more, before the first of them is reclaimed.
        let count = try store.read { (c, _) throws(SQLiteError) in try c.countAll(old) }
        store.reclaimer.begin(store)
        return count
    }

    fileprivate func put(
        _ key: StoredKey, _ content: WrittenContent, _ revision: Int64, _ connection: inout Connection,
        _ place: inout WritePlace
    ) throws(SQLiteError) {
        try place.noteOld(key, &connection, isUnpinning: content.row.isPinned == false)
        place.noteNew(content.row.size)
        var file: StoredFile?
        if let spilled = content.spilled, let blobs = place.blobs {
            do throws(SystemError) {
                file = try spilled.file(in: blobs)
                store.noteFiles()
            } catch {
                throw SQLiteError(code: .inputOutput, message: error.description, systemCode: error.number)
            }
        }
        try connection.put(place.generation, key, content.row, file: file, revision: revision)
    }
}

/// The write of one row: one object for what would be seven closures, since every set comes here.
private final class RowPut: WriteWork {
    private let ledger: RowLedger
    private let key: StoredKey
    private let content: WrittenContent
    private let deciding: @Sendable (inout WritePlace) -> Void
    private let applying: @Sendable (Int64, UInt32) -> (any Sendable)?
    private let kept = Mutex<(revision: Int64, place: WritePlace)?>(nil)

    init(
        _ ledger: RowLedger, _ key: StoredKey, _ content: WrittenContent,
        decide: @escaping @Sendable (inout WritePlace) -> Void,
        apply: @escaping @Sendable (Int64, UInt32) -> (any Sendable)?
    ) {
        self.ledger = ledger
        self.key = key
        self.content = content
        deciding = decide
        applying = apply
    }

    /// The revision of the row, and where it was written.
    var result: (Int64, WritePlace)? { kept.withLock { $0 } }

    func perform(_ connection: inout Connection, _ context: WriteContext) throws(WriteFailure) {
        let (revision, place) = try ledger.placed(&connection, context) { (connection, place) throws(WriteFailure) in
            deciding(&place)
            let revision = ledger.store.revisions.next(after: ledger.front?.lastUse ?? 0)
            do throws(SQLiteError) {
                try ledger.put(key, content, revision, &connection, &place)
            } catch {
                throw .database(error)
            }
            return revision
        }
        kept.withLock { $0 = (revision, place) }
    }

    func apply() -> (any Sendable)? {
        guard let (revision, place) = kept.withLock({ $0 }) else { return nil }
        return ledger.arrived(at: place) {
            ledger.state.withLock { state in
                state.forget(key)
                state.newest = max(state.newest, revision)
                state.counts.writes += 1
                state.leastWritten = min(state.leastWritten, content.row.writtenAt)
            }
            ledger.noteEnd(writtenAt: content.row.writtenAt, age: content.row.age)
            return applying(revision, place.round)
        }
    }
}
