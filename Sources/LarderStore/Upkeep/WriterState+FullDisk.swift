internal import LarderSQLite

/// A full disk: the blocks of the ballast are the log's, and the main file grows no more until the disk has room again.
///
/// While the disk is short of room, the log holds no more new pages than the ballast has, so it can be copied.
extension WriterState {
    /// Makes room for another attempt of a request on a full disk.
    ///
    /// - Parameters:
    ///   - excess: The rows and bytes that are evicted. If none, the ballast is released, and the file capped.
    ///   - cache: The cache whose expired and least recently used rows are evicted; nil if none may be.
    func makeRoom(_ excess: Totals, from cache: CacheDeclaration?) throws {
        guard excess != Totals() else { return try releaseBallast() }
        guard let cache else { throw SQLiteError.noRoom }
        try lookUpGenerations()
        guard let generation = generation(of: cache) else { throw StoreError.superseded }
        lastWrittenID = nil
        var rest = excess
        let before = try count(of: generation).totals
        try removeExpired(of: [generation], busyTimeout)
        let after = try count(of: generation).totals
        rest += Totals(count: after.count - before.count, size: after.size - before.size)
        var eviction = Eviction(rest, from: generation, for: .space)
        while eviction.isHeld == nil { try evictBatch(&eviction, busyTimeout) }
        copyLog()
    }

    /// Makes room for a value file by removing more bytes than it needs.
    func makeRoom(forFileOf size: Int64, from cache: CacheDeclaration) throws {
        // Other rows free no blocks of the disk.
        let files = try connection.number(.sizeOfFiles, generation(of: cache)?.id) ?? 0
        guard files >= size else { throw StoreError.full }
        let excess = Totals(count: 16, size: size * 2)
        do {
            try makeRoom(excess, from: cache)
        } catch let error as StoreError where error.code == .storageFull {
            // The ballast was released.
            try makeRoom(excess, from: cache)
        }
    }

    func releaseBallast() throws {
        guard let file = database.file else { throw SQLiteError.noRoom }
        let wasCapped = isCapped
        lookAtRoom()
        if wasCapped && !isCapped { return }
        isShortOfRoom = true
        file.ballast.release()
        try cap(true)
        // Before a commit, which would need blocks for the log.
        copyLog()
        // Other processes cap themselves when they see this commit.
        if !wasCapped && isCapped { try connection.run(.setCapped, 1) }
    }

    /// Keeps the main file from growing, or lets it grow again.
    func cap(_ isCapped: Bool) throws(SQLiteError) {
        guard isCapped != self.isCapped else { return }
        try connection.setPageLimit(isCapped ? 1 : .max)
        self.isCapped = isCapped
    }

    /// Looks how much of the disk is free.
    ///
    /// If it is twice what the ballast should have, that is made so long and the cap lifted. If it is less than four times
    /// what the largest ballast has, the log is copied sooner.
    func lookAtRoom() {
        guard let file = database.file, guardian != nil else { return }
        do {
            guard let free = try files?.freeSpace() else { return }
            isShortOfRoom = free < 4 * Ballast.maxSize
            let size = Ballast.size(for: max(connection.fileSize, bytes(ofPages: database.counter?.pages ?? 0)))
            growBallast(to: size, free)
            guard isCapped, free >= 2 * size, file.ballast.size >= size else { return }
            try cap(false)
            try connection.run(.setCapped, 0)
        } catch {}
    }

    /// Makes the ballast so long if twice that is free, and notes at how many pages the log has to be copied.
    private func growBallast(to size: Int64, _ free: Int64) {
        guard let ballast = database.file?.ballast else { return }
        if free + ballast.size >= 2 * size { ballast.grow(to: size) }
        let room = ballast.size
        // Where no file gets blocks of its own, a full disk cannot be prepared for.
        roomPages = room == 0 ? .max : Int((connection.fileSize + room) / bytes(ofPages: 1))
    }

    private func bytes(ofPages count: Int) -> Int64 { Int64(count) * Int64(Connection.pageSize) }

    /// Refuses a transaction that adds more new pages to the log than it could copy on a full disk.
    ///
    /// A transaction of a few changes cannot, unless the disk is short of room.
    func requireRoom() throws {
        guard isShortOfRoom || changeCount > 4, let ballast = database.file?.ballast, let files else { return }
        let pages = try connection.pageCount()
        guard pages > pagesAtBegin, isShortOfRoom || pages > roomPages else { return }
        let (size, free) = (bytes(ofPages: pages) - connection.fileSize, try files.freeSpace())
        isShortOfRoom = free < 4 * Ballast.maxSize
        growBallast(to: Ballast.size(for: bytes(ofPages: pages)), free)
        guard isShortOfRoom else { return }
        let room = ballast.size
        if size > (room > 0 ? room : free / 2) { throw StoreError.full }
    }
}
