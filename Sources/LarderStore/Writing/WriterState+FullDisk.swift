internal import LarderSQLite

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
            lookAtRoom()
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
    func lookAtRoom() {
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
