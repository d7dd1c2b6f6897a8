package import LarderSQLite
internal import Synchronization

extension RowLedger {
    /// A write to the generation, with what is to be done in memory once it is committed.
    package func ticket<R: Sendable>(
        _ scope: WriteScope, isCompound: Bool = false, isAlone: Bool = false, adding pages: Int = 0,
        perform: @escaping @Sendable (inout Connection, inout WritePlace) throws(WriteFailure) -> R,
        apply: @escaping @Sendable (R, WritePlace) -> (any Sendable)?
    ) -> WriteTicket<(R, WritePlace)> {
        WriteTicket(
            scope, isCompound: isCompound, isAlone: isAlone, adding: pages,
            perform: { (connection, context) throws(WriteFailure) in
                try self.placed(&connection, context, perform)
            },
            apply: { result in self.arrived(at: result.1) { apply(result.0, result.1) } })
    }

    /// Does a write where the generation is, in the transaction that writes; what reads could not make sense of goes first.
    func placed<R>(
        _ connection: inout Connection, _ context: WriteContext,
        _ perform: (inout Connection, inout WritePlace) throws(WriteFailure) -> R
    ) throws(WriteFailure) -> (R, WritePlace) {
        var (place, unreadable) = try place(&connection, context)
        if unreadable.isEmpty { return (try perform(&connection, &place), place) }
        // If it fails alone these rows stay too: only what is applied gives up their files.
        return try connection.undoing { (connection) throws(WriteFailure) in
            try drop(unreadable, &connection, &place)
            return (try perform(&connection, &place), place)
        }
    }

    /// Takes over where a committed write found itself, and makes it known in memory.
    func arrived(at place: WritePlace, _ apply: () -> (any Sendable)?) -> (any Sendable)? {
        let (isOther, isLate) = state.withLock { state in
            // Its database was given up between the commit and now; what stands in the place of that is another one.
            if place.binding.database < state.database { return (true, true) }
            defer { state.binding = place.binding }
            for key in place.dropped { state.unreadable[key] = nil }
            if place.looks {
                state.tally?.count += place.added.count
                state.tally?.size += place.added.size
                state.tally?.writes += 1
                state.tally?.bytes += place.added.written
            } else {
                state.tally = nil
            }
            return (state.binding.id != place.binding.id && state.binding.id != 0, false)
        }
        guard isOther else { return apply() }
        if isLate {
            let applied = apply()
            return [applied, front?.clear()].compactMap { $0 }
        }
        // After a move, or a clear by another process, the rows are elsewhere.
        let cleared = front?.clear()
        return [cleared, apply()].compactMap { $0 }
    }

    /// Does a write on this thread, and gives up the files that it displaced.
    package func run<R>(_ ticket: WriteTicket<(R, WritePlace)>) throws(CacheError) -> R {
        let (result, place) = try runKeeping(ticket)
        settle(place)
        return result
    }

    /// Does the write of one row.
    ///
    /// Compiled here, once: what is generic over the result is not specialised for a caller in the user's module.
    @usableFromInline
    package func put(_ ticket: WriteTicket<(Int64, WritePlace)>) throws(CacheError) { _ = try run(ticket) }

    /// The same without holding up this thread.
    @usableFromInline
    package func put(_ ticket: WriteTicket<(Int64, WritePlace)>) async throws(CacheError) { _ = try await run(ticket) }

    /// Does what a committed write calls for: gives up the files that it displaced, and holds the limits.
    ///
    /// That takes further writes, so the caller holds no key.
    package func settle(_ place: WritePlace) {
        store.giveUp(place.givenUp)
        if mayExceedLimits(by: place) { holdLimitsAfterWrite() }
        store.noteWritten(place.added.written)
    }

    /// Whether there is more than before, or may go what might not before.
    private func mayExceedLimits(by place: WritePlace) -> Bool {
        place.isGrowth || place.mayUnpin && state.withLock { $0.isLimitUnmet }
    }

    /// Does a write on this thread; the caller sees to it that it is settled.
    package func runKeeping<R>(_ ticket: WriteTicket<(R, WritePlace)>) throws(CacheError) -> (R, WritePlace) {
        do throws(CacheError) {
            return try store.queue.run(ticket, store)
        } catch {
            throw noted(error)
        }
    }

    /// Does a write without holding up this thread.
    package func run<R>(_ ticket: WriteTicket<(R, WritePlace)>) async throws(CacheError) -> R {
        do throws(CacheError) {
            let (result, place) = try await store.queue.run(ticket, store)
            let needsCare = mayExceedLimits(by: place) && (isOverLimits(slack: true) != false || store.policy.needsCare)
            if !place.givenUp.isEmpty || needsCare {
                try await offload { [self] () throws(CacheError) in settle(place) }
            } else {
                // Nothing that reads or removes: this may be a thread that tasks share.
                store.scheduleMaintenance()
            }
            return result
        } catch {
            throw noted(error)
        }
    }

    /// How many rows that could not be read go with a write.
    private static let droppedPerWrite = 64

    private func noted(_ error: CacheError) -> CacheError {
        guard error.code == .superseded else { return error }
        let displaced = supersede()
        _ = consume displaced
        return error
    }

    /// The generation to write to, in the transaction that writes, and what reads could not make sense of.
    private func place(
        _ connection: inout Connection, _ context: WriteContext
    ) throws(WriteFailure) -> (WritePlace, unreadable: [StoredKey: UnreadableRow]) {
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
            if binding.id != 0, place.generation != binding.id { place.keep(front?.noteClear()) }
        }
        return (place, unreadable)
    }

    /// Deletes what reads could not make sense of.
    private func drop(
        _ unreadable: [StoredKey: UnreadableRow], _ connection: inout Connection, _ place: inout WritePlace
    ) throws(WriteFailure) {
        // A share of them: a pass may have met any number, and every write of a batch comes here.
        for (key, row) in unreadable.lazy.filter(\.value.isDropped).prefix(Self.droppedPerWrite) {
            try connection.failing { (c) throws(SQLiteError) in
                let old = place.looks ? try c.burden(place.generation, key) : nil
                // A newer row, another process's or one of this batch, keeps its file.
                guard try c.delete(place.generation, key, revision: row.revision) else { return }
                if let old { place.noteGone(old.file, old.size) }
            }
            place.dropped.append(key)
        }
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

    /// Runs `body`, and undoes what it did if a statement of it fails; a refusal comes before the first one.
    package mutating func undoing<R>(
        _ body: (inout Connection) throws(WriteFailure) -> R
    ) throws(WriteFailure) -> R {
        let outcome = try failing { (connection) throws(SQLiteError) -> Result<R, WriteFailure> in
            try connection.transaction { (connection) throws(SQLiteError) -> Result<R, WriteFailure> in
                do throws(WriteFailure) {
                    return .success(try body(&connection))
                } catch {
                    if case .database(let error) = error { throw error }
                    return .failure(error)
                }
            }
        }
        return try outcome.get()
    }
}
