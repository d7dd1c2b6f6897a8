internal import LarderSQLite
internal import Synchronization

extension Store {
    /// Runs `body` on the current database; on another one if that one was moved, damaged or closed meanwhile.
    func onDatabase<R>(
        _ action: String, _ body: (Database) throws(SQLiteError) -> R
    ) throws(CacheError) -> R {
        var (failures, damages) = (0, 0)
        while true {
            let database = try current()
            do {
                return try body(database)
            } catch {
                failures += 1
                if error.isCorruption { damages += 1 }
                guard failures < 5, try helps(database, after: error, isRepeated: damages > 1) else {
                    throw CacheError("\(action) \(opening.name)", error)
                }
            }
        }
    }

    func current() throws(CacheError) -> Database {
        if let database { return database }
        throw CacheError(.closed, "\(opening.name) was closed; open a new manager")
    }

    /// Opens another database instead of `database` if that is what `error` calls for.
    private func helps(
        _ database: Database, after error: SQLiteError, isRepeated: Bool
    ) throws(CacheError) -> Bool {
        // Nobody is left who may make or move files.
        guard isWritable.load(ordering: .relaxed) || opening.isReadOnly else { return false }
        if error.isCorruption {
            // A file that is not ours any more may well look damaged.
            guard !database.isInPlace || opening.replacesDamaged else { return false }
            let isOurs = database.isInPlace
            try reopen(database, damage: isOurs ? error : nil, isCertain: isRepeated)
            return true
        }
        // Closed: somebody opens another one at this moment, or could not and left it to the next caller.
        guard error.code == SQLiteError.closed.code || !database.isInPlace else { return false }
        try reopen(database, damage: nil)
        return true
    }

    /// Opens another database instead of `database`, unless that was done already.
    ///
    /// - Parameter isRepair: Whether it is replaced because a caller asked for it.
    /// - Returns: What became of a damaged one.
    @discardableResult
    func reopen(
        _ database: Database, damage: SQLiteError?, isCertain: Bool = false, isRepair: Bool = false
    ) throws(CacheError) -> SalvagedStore? {
        var salvaged: SalvagedStore?
        var discards = Discards()
        let notices = try reopening.withLock { _ throws(CacheError) -> [StoreNotice] in
            guard self.database === database else { return [] }
            // Our own connections go first, so that nobody here works on files that are about to be moved.
            database.close()
            let loss = StoreLoss(
                identity: database.identity, logIdentity: database.logIdentity, damage: damage,
                isCertain: isCertain, isRepair: isRepair)
            let opened = try opening.open(after: loss)
            state.withLock { $0 = opened.database }
            salvaged = opened.salvaged
            // Before anybody can write to it: what was in memory was true of another database.
            for ledger in live.all { ledger.moved(to: opened.database.present, &discards) }
            return damage == nil ? [.reopened(path: opening.name)] + opened.notices : opened.notices
        }
        // Outside the lock: who is told may use the store, and so may what is released.
        tell(notices, releasing: discards)
        return salvaged
    }
}
