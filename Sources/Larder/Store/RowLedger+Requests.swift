internal import Foundation
internal import LarderSQLite
internal import Synchronization

/// How a request changes the rows of its cache, and what is known of them.
extension RowLedger {
    /// Returns a request that writes one row.
    ///
    /// - Parameter scope: Other than the key, where that is held by the caller.
    @usableFromInline
    package func putRequest(
        _ key: StoredKey, _ content: WrittenContent, scope: WriteScope?, _ effect: MemoryEffect
    ) -> WriteRequest {
        WriteRequest(.put([RowContent(key, content)], admits: nil), to: self, scope: scope, effect)
    }

    /// Makes a request in the transaction that writes; rows that could not be read are deleted with it.
    func perform(
        _ request: WriteRequest, _ connection: inout Connection, _ context: WriteContext
    ) throws(WriteFailure) {
        var (place, unreadable) = try place(&connection, context, &request.discards)
        request.outcome = WriteOutcome(round: place.round)
        if unreadable.isEmpty {
            try execute(request, &connection, &place)
        } else {
            // If it fails alone these rows stay too: only what is applied gives up their files.
            try connection.undoing { (connection) throws(WriteFailure) in
                try drop(unreadable, &connection, &place)
                try execute(request, &connection, &place)
            }
        }
        request.place = place
    }

    private func execute(
        _ request: WriteRequest, _ connection: inout Connection, _ place: inout WritePlace
    ) throws(WriteFailure) {
        if case .cacheBlock(let body, _) = request.operation { return try body(&connection, &place) }
        let refusal: CacheError?
        do throws(SQLiteError) {
            refusal = try execute(request.operation, request, &connection, &place)
        } catch {
            throw .database(error)
        }
        if let refusal { throw .refused(refusal) }
    }

    /// - Returns: Why nothing was changed, where that is an error.
    private func execute(
        _ operation: WriteOperation, _ request: WriteRequest, _ connection: inout Connection, _ place: inout WritePlace
    ) throws(SQLiteError) -> CacheError? {
        switch operation {
        case .put(let rows, let admits): try put(rows, admits, request, &connection, &place)
        case .remove(let keys): try remove(keys, request, &connection, &place)
        case .take(let target): try take(target, request, &connection, &place)
        case .change(let target, let change): return try self.change(target, change, request, &connection, &place)
        case .evict(let victims, _): try evict(victims, request, &connection, &place)
        case .clear: try clear(request, &connection, &place)
        case .cacheBlock, .storeBlock, .hold: break
        }
        return nil
    }

    private func put(
        _ rows: [RowContent], _ admits: (@Sendable (Int) -> Bool)?, _ request: WriteRequest,
        _ connection: inout Connection, _ place: inout WritePlace
    ) throws(SQLiteError) {
        // Each row has a number of its own, in their order.
        let revision = store.revisions.next(after: request.begin())
        request.outcome.revision = revision
        for (index, row) in rows.enumerated() where admits?(index) ?? true {
            try put(row.key, row.content, revision + Int64(index), &connection, &place)
            if rows.count > 1 {
                request.outcome.indices.append(index)
            } else {
                request.outcome.indices = WriteOutcome.only
            }
        }
    }

    private func put(
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
        if !content.row.tags.isEmpty { try connection.addTags(content.row.tags, place.generation, key) }
    }

    private func remove(
        _ keys: [StoredKey], _ request: WriteRequest, _ connection: inout Connection, _ place: inout WritePlace
    ) throws(SQLiteError) {
        _ = request.begin()
        for (index, key) in keys.enumerated() {
            try place.noteOld(key, &connection)
            if try connection.delete(place.generation, key) { request.outcome.indices.append(index) }
        }
    }

    private func take(
        _ target: EntryTarget, _ request: WriteRequest, _ connection: inout Connection, _ place: inout WritePlace
    ) throws(SQLiteError) {
        _ = request.begin()
        guard let row = try connection.row(place.generation, target.key) else { return }
        place.noteGone(row.facts.file, row.facts.size)
        if isLive(target, row.facts) { request.outcome.row = row }
        _ = try connection.delete(place.generation, target.key)
        request.outcome.indices = WriteOutcome.only
    }

    private func change(
        _ target: EntryTarget, _ change: EntryChange, _ request: WriteRequest, _ connection: inout Connection,
        _ place: inout WritePlace
    ) throws(SQLiteError) -> CacheError? {
        guard let facts = try connection.facts(place.generation, target.key), isLive(target, facts) else { return nil }
        let revision = store.revisions.next(after: request.begin())
        let size = try connection.change(
            place.generation, target.key, seen: facts.revision, next: revision, isWrite: change.isWrite,
            atMost: largestEntry.load(ordering: .relaxed), change.apply)
        do throws(CacheError) {
            try checkSize(size, of: target.key)
        } catch {
            return error
        }
        if let new = try connection.burden(place.generation, target.key) {
            place.noteResized(by: new.size - facts.size)
            if facts.isPinned, !new.isPinned { place.mayUnpin = true }
        }
        (request.outcome.revision, request.outcome.indices) = (revision, WriteOutcome.only)
        return nil
    }

    /// A Boolean value that indicates whether an entry has not expired, in the turn of a request that waited since `target.now`.
    private func isLive(_ target: EntryTarget, _ facts: EntryFacts) -> Bool {
        let seen = seenInTurn(target.key, facts, target.rule, since: target.now, accessedAt: target.accessedAt)
        return seen.map { !$0.facts.isExpired(target.rule, now: $0.moment) } ?? false
    }

    private func evict(
        _ victims: [RowVictim], _ request: WriteRequest, _ connection: inout Connection, _ place: inout WritePlace
    ) throws(SQLiteError) {
        for (index, victim) in victims.enumerated() where try delete(victim, place.generation, &connection) {
            request.outcome.indices.append(index)
            // Of this revision, so it is the file that was seen.
            place.noteGone(victim.file, victim.size)
        }
        if request.outcome.isChange { _ = request.begin() }
    }

    private func clear(
        _ request: WriteRequest, _ connection: inout Connection, _ place: inout WritePlace
    ) throws(SQLiteError) {
        var generation = try connection.liveGeneration(named: name) ?? declared
        generation.lineage = place.binding.root
        try connection.retire(place.generation)
        request.outcome.generation = (try connection.insert(generation), place.generation)
    }

    /// Writes down what the latest opening declared.
    func declare(_ declared: Generation) throws(CacheError) {
        try write(BlockTraits(isCompound: false)) { (connection, place) throws(SQLiteError) in
            try connection.declare(
                place.generation, age: declared.age, keepsExpired: declared.keepsExpired, openedAt: declared.openedAt)
        } apply: { _, _ in
            self.state.withLock { state in
                state.declared.age = declared.age
                state.declared.keepsExpired = declared.keepsExpired
            }
        }
    }

    /// Empties the cache in one step; the rows are reclaimed in the background.
    ///
    /// - Returns: The number of rows that there were.
    package func clear() throws(CacheError) -> Int {
        let request = WriteRequest(.clear, to: self)
        try run(request)
        guard let old = request.outcome.generation?.old else { return 0 }
        // Of rows that no write changes any more, before the first of them is reclaimed.
        let count = try store.read { (c, _) throws(SQLiteError) in try c.countAll(old) }
        store.reclaimer.begin(store)
        return count
    }

    // MARK: - After the commit

    /// Makes a committed request known: here, and in the memory tier.
    func apply(_ request: WriteRequest) {
        guard let place = request.place else { return }
        let arrival = state.withLock { state in
            let arrival = state.arrive(at: place)
            if arrival != .late { state.note(request.operation, request.outcome) }
            return arrival
        }
        if case .put(let rows, _) = request.operation {
            for index in request.outcome.indices {
                noteEnd(writtenAt: rows[index].content.row.writtenAt, age: rows[index].content.row.age)
            }
        }
        let isCleared = request.outcome.generation != nil
        // After a move, or a clear by another process, the rows are elsewhere.
        if arrival == .elsewhere || isCleared { front?.clear(&request.discards) }
        request.applyEffect()
        if arrival == .late { front?.clear(&request.discards) }
    }
}

/// What became of the rows that a request was for by the time that it was committed.
enum WriteArrival {
    case here
    /// They are another generation's.
    case elsewhere
    /// Another database has taken the place of theirs.
    case late
}

extension RowLedgerState {
    /// Takes over where a committed request was made.
    mutating func arrive(at place: WritePlace) -> WriteArrival {
        // Its database was given up between the commit and now.
        if place.binding.database < database { return .late }
        defer { binding = place.binding }
        for key in place.dropped { unreadable[key] = nil }
        if place.looks {
            tally?.count += place.added.count
            tally?.size += place.added.size
            tally?.writes += 1
            tally?.bytes += place.added.written
        } else {
            tally = nil
        }
        return binding.id != place.binding.id && binding.id != 0 ? .elsewhere : .here
    }

    /// Takes over what a committed request has changed.
    mutating func note(_ operation: WriteOperation, _ outcome: WriteOutcome) {
        switch operation {
        case .put(let rows, _):
            for index in outcome.indices {
                forget(rows[index].key)
                leastWritten = min(leastWritten, rows[index].content.row.writtenAt)
            }
            if let last = outcome.indices.last { newest = max(newest, outcome.revision + Int64(last)) }
            counts.writes += outcome.indices.count
        case .remove(let keys):
            for key in keys { forget(key) }
            counts.removals += outcome.indices.count
        case .take(let target):
            forget(target.key)
            counts.removals += outcome.indices.count
        case .change(let target, _):
            guard outcome.isChange else { return }
            // Limits spare it, as any entry that was just written.
            newest = max(newest, outcome.revision)
            forget(target.key)
        case .evict(let victims, let cause):
            for index in outcome.indices {
                count(victims[index], cause)
                forget(victims[index].key)
            }
        case .clear:
            guard let generation = outcome.generation else { return }
            binding.id = generation.new.id
            forgetEverything()
        case .cacheBlock, .storeBlock, .hold: break
        }
    }
}
