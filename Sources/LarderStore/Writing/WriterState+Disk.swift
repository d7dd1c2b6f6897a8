internal import LarderSQLite

/// The log: when it is copied into the main file, and what is left of it at the end.
extension WriterState {
    var uncopiedPages: Int { database.uncopiedPages(connection) }

    /// Copies a log that may not grow further on a disk that is short of room.
    func copyLongLog() { if logKeeper.needsCopy(uncopiedPages) { copyLog() } }

    /// Returns whether the log is long and the caller is to have it copied; true once until it is copied.
    func schedulesCopy() -> Bool { logKeeper.schedulesCopy(uncopiedPages, pages: database.counter?.pages ?? 0) }

    /// A Boolean value that indicates whether the log has grown as long again since the copy was scheduled.
    var isCopyOverdue: Bool { logKeeper.isOverdue(uncopiedPages) }

    func copyOverdueLog() { if isCopyOverdue { copyLog() } }

    /// Copies the log into the main file.
    func copyLog() {
        if let event = logKeeper.copy(&connection, of: database, readers) { outbox.notices.append(.event(event)) }
    }

    /// Copies the log and begins it again, and returns false if another process keeps frames in it.
    ///
    /// - Parameter bytes: The bytes that the file of the log keeps.
    func emptyLog(keeping bytes: Int = 0) throws(SQLiteError) -> Bool {
        guard logKeeper.hasGuardian else { return true }
        copyLog()
        do { try connection.shrinkLog(to: bytes, watch) } catch { if error.code != .busy { throw error } }
        logKeeper.noteEmptied()
        return connection.logPages < 10
    }

    /// Stores the accesses, writes the activity, and leaves no frame in the log if no other connection has the file open.
    func close(at now: Int64) {
        flush(at: now)
        database.end()
        readers?.open(nil)
        closeLog()
    }

    /// Writes the accesses and the activity, if no other store writes.
    func flush(at now: Int64) {
        do {
            try transaction(until: Deadline(in: 0)) { state in
                try state.storeAccesses()
                try state.writeActivity(at: now)
            }
        } catch {}
    }

    /// Copies the log, and leaves no frame in it if no other connection has the file open; the connection is closed next.
    func closeLog() {
        guard logKeeper.hasGuardian else { return }
        copyLog()
        logKeeper.end()
        do { _ = try connection.emptyLog(keeping: logKeeper.isShort ? Int(Ballast.maxSize) : 0) } catch {}
    }
}

/// A full disk.
extension WriterState {
    /// Makes room for another attempt of a request on a full disk.
    ///
    /// - Parameter cache: The cache whose expired and least recently used rows are evicted; nil if none may be.
    func makeRoom(after failure: StoreError, from cache: CacheDeclaration?) throws {
        if failure.isFullDisk { try releaseBallast() } else { copyLog() }
        if failure.isFullDisk || logKeeper.isFull, let cache { try evict(Totals(count: 64), from: cache) }
    }

    /// Makes room for a value file by removing more bytes than it needs.
    func makeRoom(forFileOf size: Int64, from cache: CacheDeclaration) throws {
        // Deleting rows frees pages inside the main file; only a value file gives blocks back.
        try lookUpIncarnations()
        let files = try connection.number(.sizeOfFiles, incarnation(of: cache)?.id) ?? 0
        guard files >= size else { throw StoreError.full }
        let excess = Totals(count: 16, size: size * 2)
        do {
            try evict(excess, from: cache)
        } catch let error as StoreError where error.code == .storageFull {
            try releaseBallast()
            try evict(excess, from: cache)
        }
    }

    /// Evicts expired and then least recently used rows of a cache, and copies the log.
    private func evict(_ excess: Totals, from declaration: CacheDeclaration) throws {
        try lookUpIncarnations()
        guard let cache = incarnation(of: declaration) else { throw StoreError.superseded }
        limiter.noteWrite(nil)
        var eviction = begin(Eviction(excess, from: cache, for: .space))
        while eviction.isHeld == nil {
            let removed: Totals?
            (removed, eviction) = try evictSlice(eviction, waiting: busyTimeout)
            // The request waits for room, whatever the choice takes.
            if removed == nil { try chooseHere(&eviction, nil, amongMany: true) }
        }
        copyLog()
    }

    /// Gives the blocks of the ballast to the log, for removals and changes: new pages are refused until there is room.
    func releaseBallast() throws { if try logKeeper.releaseBallast(connection, database) { copyLog() } }

    /// Refuses a transaction that adds pages on a full disk, or more of them than the log could copy on one.
    func requireRoom() throws {
        let (changes, before) = (changeCount, open.pagesBefore)
        try logKeeper.requireRoom(&connection, database, changes: changes, pagesBefore: before)
    }
}

/// The reason to open a file again.
///
/// A rollback that has failed counts as a move.
enum Loss {
    case moved, damaged
    /// The connections were closed, to be opened again after the store is resumed.
    case suspended
}

/// The file is opened again after it was moved, or exchanged for a sound one after it was damaged.
extension WriterState {
    var isLost: Bool { loss != nil }

    /// Undoes the transaction for a failure, and returns the failure.
    func fail(_ error: any Error) -> StoreError {
        rollBack()
        var error = StoreError(any: error)
        if isDamage(error) {
            error = StoreError(SQLiteError(code: .corrupt, message: "a page names one that no file can have"))
        }
        note(error)
        return error
    }

    /// Returns whether a disk that is said to be full is not: SQLite says so too of the number of a page that is too large.
    ///
    /// All pages are read for that, once for each opening of the file.
    private func isDamage(_ error: StoreError) -> Bool {
        guard error.saysFull, !isChecked, let files else { return false }
        do {
            guard try files.freeSpace() > 16 * Ballast.maxSize, try connection.canGrow() else { return false }
            isChecked = true
            return try !connection.integrityProblems().isEmpty
        } catch {
            return false
        }
    }

    /// Notes a failure after which the file has to be opened again.
    func note(_ error: StoreError) {
        guard let options = database.file?.file.options else { return }
        let isDamaged = error.code == .corrupt && options.recovery == .salvage
        // A rollback that has failed leaves a transaction that nothing else ends.
        let isUnusable = !isWriting && !connection.isInAutocommit
        if loss == .suspended { return }
        if isDamaged || isUnusable || error.isAboutMove { loss = isDamaged ? .damaged : .moved }
    }

    /// Opens the path again, and declares the caches that this process has opened if they are missing there.
    ///
    /// If that fails, the next call tries it again. A damaged file that cannot be exchanged is used until the next failure.
    func reopen() throws(StoreError) {
        guard let old = database.file, let loss else { return }
        let open = tiers.names
        let known =
            undeclared ?? (
                incarnations.values.filter { open.contains($0.cache.identity.name) },
                limiter.isCurrent ? limiter.storeLimits : StoreLimits()
            )
        if !connection.isInAutocommit {
            // A transaction keeps its locks until the connection is closed.
            connection = try StoreError.translating {
                try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
            }
        } else if loss == .damaged {
            self.loss = nil
        }
        // The log may not have been moved yet, and would be deleted.
        if loss == .moved {
            readers?.open(nil)
            copyLog()
        }
        var next = try old.file.open(after: old, isDamaged: loss == .damaged)
        var isSameFile = loss == .suspended && undeclared == nil && next.database.file?.identity == old.identity
        if isSameFile {
            // A new file can get the number of a deleted one.
            let ids = Set(incarnations.values.map(\.id))
            let found = try StoreError.translating { try next.connection.liveIncarnations() }.values.map(\.id)
            isSameFile = ids.isEmpty || !ids.isDisjoint(with: found)
        }
        (self.loss, undeclared) = (.moved, known)
        // They may belong to the new file now.
        outbox.files = []
        database.end()
        readers?.open(nil)
        database = next.database
        // Of the same file, memory compares what it has with the rows.
        outbox.notices.append(.opened(watch, isSameFile: isSameFile))
        outbox.notices += next.events.map { .event($0) }
        connection = next.connection
        rollBack()
        limiter.reset()
        isChecked = false
        logKeeper.begin(next.guardian, connection, database)
        if !isSameFile && !old.file.options.isReadOnly { try declareAgain() }
        (self.loss, undeclared) = (nil, nil)
        // Before, a read would not find the caches.
        readers?.open(database)
    }

    /// Closes the connections, and with them every lock, until the file is opened again.
    func suspend(at now: Int64) throws(StoreError) {
        if database.file == nil || loss == .suspended { return }
        let placeholder = try StoreError.translating {
            try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
        }
        flush(at: now)
        watch.pause()
        readers?.open(nil)
        closeLog()
        connection = placeholder
        rollBack()
        loss = .suspended
    }

    private func declareAgain() throws(StoreError) {
        guard let undeclared else { return }
        try StoreError.translating {
            try transaction(until: Deadline(in: busyTimeout)) { state in
                for cache in undeclared.caches where state.incarnations[cache.cache.identity.name] == nil {
                    try state.declare(cache)
                }
                if state.limiter.storeLimits == StoreLimits() { try state.setLimits(undeclared.limits) }
            }
        }
    }
}
