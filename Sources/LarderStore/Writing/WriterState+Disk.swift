internal import LarderSQLite

/// When the log is copied into the main file.
struct LogCopies {
    /// The number of pages that are not in the main file yet at which the log is copied next.
    var nextPages = Ballast.pages
    var isScheduled = false
    /// True after a copy that has failed, which is reported once.
    var isFailing = false
}

/// The log: when it is copied into the main file, and what is left of it at the end.
extension WriterState {
    /// The number of pages of the log that are not in the main file yet, in whatever process they were written.
    var uncopiedPages: Int { database.counter?.uncopiedFrames ?? connection.logPages }

    private var copyInterval: Int { room.isShort ? Ballast.pages / 5 : Ballast.pages }

    /// Copies a log that may not grow further on a disk that is short of room.
    func copyLongLog() { if room.isShort && uncopiedPages >= copyInterval { copyLog() } }

    /// Forgets what was known of the log of another file.
    func resetLog() { (log.nextPages, log.isScheduled) = (copyInterval, false) }

    /// Returns whether the log is long and the caller is to have it copied; true once until it is copied.
    func schedulesCopy() -> Bool {
        guard !log.isScheduled else { return false }
        guard uncopiedPages >= log.nextPages || database.counter?.pages ?? 0 > room.pages else { return false }
        log.isScheduled = true
        // After a copy in vain the next one is not put off as long.
        log.nextPages = uncopiedPages + (uncopiedPages < 2 * copyInterval ? copyInterval : 100)
        return true
    }

    /// A Boolean value that indicates whether the log has grown as long again since the copy was scheduled.
    var isCopyOverdue: Bool { log.isScheduled && uncopiedPages >= log.nextPages }

    func copyOverdueLog() { if isCopyOverdue { copyLog() } }

    /// Copies the log into the main file.
    ///
    /// If that fails or a long read holds the log up, in this process or another one, it is tried again 100 pages later.
    func copyLog() {
        log.isScheduled = false
        log.nextPages = uncopiedPages + 100
        // A log that may not grow, or has grown without bound, is worth the wait for long reads.
        let isUrgent = room.isShort || connection.logPages > 16 * Ballast.pages
        readers?.release(waits: isUrgent)
        do {
            if guardian != nil, try connection.checkpoint(guardedBy: &guardian!) {
                log.nextPages = copyInterval
                if log.isFailing { outbox.notices.append(.event(.logCopied)) }
                log.isFailing = false
            }
        } catch {
            if !log.isFailing { outbox.notices.append(.event(.logNotCopied(StoreError(error)))) }
            log.isFailing = true
        }
        keepRoom()
        // It is tried again because of the pages of the log alone.
        if uncopiedPages > 0 { room.pages = .max }
        // A read transaction that began in the meantime keeps the log from beginning again.
        readers?.release()
    }

    /// Copies the log and begins it again, and returns false if another process keeps frames in it.
    ///
    /// - Parameter bytes: The bytes that the file of the log keeps.
    func emptyLog(keeping bytes: Int = 0) throws(SQLiteError) -> Bool {
        guard guardian != nil else { return true }
        copyLog()
        do { try connection.shrinkLog(to: bytes, watch) } catch { if error.code != .busy { throw error } }
        log.nextPages = copyInterval
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
        if guardian == nil { return }
        copyLog()
        guardian = nil
        do { _ = try connection.emptyLog(keeping: room.isShort ? Int(Ballast.maxSize) : 0) } catch {}
    }
}

/// What is known of the room on the disk.
struct Room {
    /// True once the ballast was given up: no transaction adds pages.
    var isFull = false
    /// True if there is less than four times the largest ballast: the log is copied sooner.
    var isShort = false
    /// The number of pages of the database above which the log is copied: the ballast has room for no more.
    var pages = Int.max
}

/// A full disk: the blocks of the ballast are the log's, and no transaction adds pages until the disk has room again.
///
/// While the disk is short of room, the log holds no more new pages than the ballast has, so it can be copied.
extension WriterState {
    /// Makes room for another attempt of a request on a full disk.
    ///
    /// - Parameter cache: The cache whose expired and least recently used rows are evicted; nil if none may be.
    func makeRoom(after failure: StoreError, from cache: CacheDeclaration?) throws {
        if failure.isFullDisk { try releaseBallast() } else { copyLog() }
        if failure.isFullDisk || room.isFull, let cache { try evict(Totals(count: 64), from: cache) }
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
        lastWrittenID = nil
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
    func releaseBallast() throws {
        guard let file = database.file else { throw SQLiteError.noRoom }
        if room.isFull {
            keepRoom()
            if !room.isFull { return }
        }
        (room.isFull, room.isShort) = (true, true)
        file.ballast.release()
        // Before a commit, which would need blocks for the log.
        copyLog()
    }

    /// Looks how much of the disk is free.
    ///
    /// If it is twice what the ballast should have, that is made so long, and the disk is full no more. If it is less than
    /// four times what the largest ballast has, the log is copied sooner.
    func keepRoom() {
        guard let file = database.file, guardian != nil else { return }
        do {
            guard let free = try files?.freeSpace() else { return }
            room.isShort = free < 4 * Ballast.maxSize
            let size = Ballast.size(for: max(connection.fileSize, bytes(ofPages: database.counter?.pages ?? 0)))
            growBallast(to: size, free)
            if free >= 2 * size && (file.ballast.size >= size || !room.isShort) { room.isFull = false }
        } catch {}
    }

    /// Makes the ballast so long if twice that is free, and notes at how many pages the log has to be copied.
    private func growBallast(to size: Int64, _ free: Int64) {
        guard let ballast = database.file?.ballast else { return }
        if free + ballast.size >= 2 * size { ballast.grow(to: size) }
        let reserved = ballast.size
        // Where no file gets blocks of its own, a full disk cannot be prepared for.
        room.pages = reserved == 0 ? .max : Int((connection.fileSize + reserved) / bytes(ofPages: 1))
    }

    private func bytes(ofPages count: Int) -> Int64 { Int64(count) * Int64(Connection.pageSize) }

    /// Refuses a transaction that adds pages on a full disk, or more of them than the log could copy on one.
    ///
    /// A transaction of a few changes cannot, unless the disk is short of room.
    func requireRoom() throws {
        guard room.isShort || changeCount > 4, let ballast = database.file?.ballast, let files else { return }
        let pages = try connection.pageCount()
        guard pages > open.pagesBefore, room.isShort || pages > room.pages else { return }
        if room.isFull { throw StoreError.full }
        let (size, free) = (bytes(ofPages: pages) - connection.fileSize, try files.freeSpace())
        room.isShort = free < 4 * Ballast.maxSize
        growBallast(to: Ballast.size(for: bytes(ofPages: pages)), free)
        guard room.isShort else { return }
        let reserved = ballast.size
        if size > (reserved > 0 ? reserved : free / 2) { throw StoreError.full }
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
        let error = StoreError(any: error)
        note(error)
        return error
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
                knowsLimits ? storeLimits : StoreLimits()
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
        guardian = next.guardian
        rollBack()
        (room.isFull, waits, evictions) = (false, LimitWaits(), [:])
        keepRoom()
        resetLog()
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
                if state.storeLimits == StoreLimits() { try state.setLimits(undeclared.limits) }
            }
        }
    }
}
