package import LarderSQLite
internal import Synchronization

extension RowLedger {
    /// Makes a write on this thread, and does what it calls for.
    @usableFromInline
    package func run(_ request: WriteRequest) throws(CacheError) {
        try runKeeping(request)
        settle(request)
    }

    /// Makes a write on this thread; the caller settles it.
    package func runKeeping(_ request: WriteRequest) throws(CacheError) {
        do throws(CacheError) {
            try store.queue.run(request, store)
        } catch {
            throw noted(error)
        }
    }

    /// Makes a write without holding up this thread.
    @usableFromInline
    package func run(_ request: WriteRequest) async throws(CacheError) {
        do throws(CacheError) {
            try await store.queue.run(request, store)
        } catch {
            throw noted(error)
        }
        guard let place = request.place else { return }
        let needsCare = mayExceedLimits(by: place) && (isOverLimits(slack: true) != false || store.policy.needsCare)
        if !place.givenUp.isEmpty || needsCare {
            try await offload { [self] () throws(CacheError) in settle(request) }
        } else {
            // Nothing that reads or removes: this may be a thread that tasks share.
            store.scheduleMaintenance()
        }
    }

    /// Does what a committed write calls for: gives up the files that it displaced, and holds the limits.
    ///
    /// That takes further writes, so the caller holds no key.
    package func settle(_ request: WriteRequest) {
        guard request.isGood, let place = request.place else { return }
        store.giveUp(place.givenUp)
        if mayExceedLimits(by: place) { holdLimitsAfterWrite() }
        store.noteWritten(place.added.written)
    }

    /// Does something to the rows of the cache that is none of a request's other operations.
    ///
    /// - Parameters:
    ///   - body: May be called again, in another transaction.
    ///   - apply: Called once it is committed, before any later write is.
    @discardableResult
    func write<R: Sendable>(
        _ traits: BlockTraits = BlockTraits(),
        _ body: @escaping @Sendable (inout Connection, inout WritePlace) throws(SQLiteError) -> R,
        apply: @escaping @Sendable (R, UInt32) -> Void = { _, _ in }
    ) throws(CacheError) -> R {
        let result = Mutex<(value: R, round: UInt32)?>(nil)
        let request = WriteRequest(
            .cacheBlock(
                { (connection, place) throws(WriteFailure) in
                    do throws(SQLiteError) {
                        let value = try body(&connection, &place)
                        let round = place.round
                        result.withLock { $0 = (value, round) }
                    } catch {
                        throw .database(error)
                    }
                }, traits),
            to: self, scope: .unheld
        ) { _ in
            if let result = result.withLock({ $0 }) { apply(result.value, result.round) }
        }
        try run(request)
        guard let result = result.withLock({ $0 }) else {
            preconditionFailure("A write was acknowledged and never made.")
        }
        return result.value
    }

    /// Whether there is more than before, or may go what might not before.
    private func mayExceedLimits(by place: WritePlace) -> Bool {
        place.isGrowth || place.mayUnpin && state.withLock { $0.isLimitUnmet }
    }

    /// How many rows that could not be read go with a write.
    private static let droppedPerWrite = 64

    private func noted(_ error: CacheError) -> CacheError {
        guard error.code == .superseded else { return error }
        var discards = Discards()
        supersede(&discards)
        return error
    }

    /// The generation to write to, in the transaction that writes, and what reads could not make sense of.
    func place(
        _ connection: inout Connection, _ context: WriteContext, _ discards: inout Discards
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
            if binding.id != 0, place.generation != binding.id { front?.noteClear(&discards) }
        }
        return (place, unreadable)
    }

    /// Deletes what reads could not make sense of.
    func drop(
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
