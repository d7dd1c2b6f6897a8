package import LarderSQLite
internal import Synchronization

extension Store {
    /// Runs `body` in one transaction of the writing side, and acknowledges it only once it stands in the file at our
    /// path.
    ///
    /// `body` may run again, on another database.
    package func write<R: Sendable>(
        _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R
    ) throws(CacheError) -> R {
        let result = try writeAlone(adding: .max, body)
        keepLogShort()
        return result
    }

    /// The same, and whoever calls it sees to the log, once memory knows what was written.
    func writeAlone<R: Sendable>(
        adding pages: Int, _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R
    ) throws(CacheError) -> R {
        try onDatabase("cannot write to") { (database) throws(SQLiteError) in
            let result = try database.write(adding: pages, body)
            guard database.isInPlace else { throw .moved }
            return result
        }
    }

    /// Whether any row may name a file, so that whoever writes over rows has to look.
    ///
    /// It is asked anew when somebody else has committed.
    func mayHaveFiles(_ context: WriteContext) -> Bool {
        guard let blobs = context.present.blobs else { return false }
        return filesSeen.withLock { seen in
            if seen.database == context.database, seen.exist || seen.round == context.round { return seen.exist }
            seen = (context.database, context.round, blobs.exists)
            return seen.exist
        }
    }

    /// Keeps other processes from writing until ``finishExclusive(_:_:)``; nil in memory, where there are none.
    ///
    /// In memory one connection reads and writes, so a transaction open between two calls would show in every read.
    package func beginExclusive() throws(CacheError) -> Database? {
        try onDatabase("cannot write to") { (database) throws(SQLiteError) -> Database? in
            guard database.identity != nil else { return nil }
            try database.beginExclusive()
            return database
        }
    }

    /// Runs `body` in the transaction that was begun on `turn`, or in one of its own, and commits it.
    ///
    /// `body` may run again, on another database; whoever calls it sees to the log, once memory knows what was written.
    ///
    /// - Parameter pages: How many pages it adds at most; 0 where nothing is added.
    package func finishExclusive(
        _ turn: Database?, adding pages: Int = .max,
        _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> Void
    ) throws(CacheError) {
        guard let turn else { return try writeAlone(adding: pages, body) }
        var isFirst = true
        try onDatabase("cannot write to") { (database) throws(SQLiteError) in
            defer { isFirst = false }
            if isFirst {
                try turn.finishExclusive(adding: pages, body)
                guard turn.isInPlace else { throw .moved }
            } else {
                try database.write(adding: pages, body)
                guard database.isInPlace else { throw .moved }
            }
        }
    }

    // MARK: - Requests

    /// Runs the body of a batch in one transaction; the leader of the queue sees to the log.
    ///
    /// - Parameter pages: How many pages it adds at most; 0 where it adds nothing, and may use what is kept for removals.
    func commit(
        adding pages: Int, _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> Void
    ) throws(CacheError) {
        try writeAlone(adding: pages, body)
    }

    /// Does something to the store that is no other operation of a request.
    ///
    /// - Parameters:
    ///   - body: May be called again, in another transaction.
    ///   - apply: Called once it is committed, before any later write is.
    @discardableResult
    func write<R: Sendable>(
        _ traits: BlockTraits, scope: WriteScope = .unheld,
        _ body: @escaping @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> R,
        apply: @escaping @Sendable (R, inout Discards) -> Void = { _, _ in }
    ) throws(CacheError) -> R {
        let result = Mutex<R?>(nil)
        let request = WriteRequest(
            .storeBlock(
                { (connection, context) throws(WriteFailure) in
                    do throws(SQLiteError) {
                        let value = try body(&connection, context)
                        result.withLock { $0 = value }
                    } catch {
                        throw .database(error)
                    }
                }, traits),
            scope: scope
        ) { discards in
            if let result = result.withLock({ $0 }) { apply(result, &discards) }
        }
        try queue.run(request, self)
        guard let result = result.withLock({ $0 }) else {
            preconditionFailure("A write was acknowledged and never made.")
        }
        return result
    }

    /// On a full volume: makes what room the store can make without removing anything; whether there was any to be made.
    func regainRoom() -> Bool { database?.regainRoom() ?? false }
}
