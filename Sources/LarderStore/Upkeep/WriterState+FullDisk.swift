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
        // Other processes cap themselves when they see this commit.
        if !wasCapped { try connection.run(.setCapped, 1) }
        copyLog()
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
            let size = connection.fileSize
            try makeBallast(file.ballast, Ballast.size(for: size), free)
            let pages = max(Int(size) / Connection.pageSize, database.counter?.pages ?? 0)
            roomPages = pages + Int(file.ballast.size) / Connection.pageSize
        } catch {}
    }

    private func makeBallast(_ ballast: Ballast, _ size: Int64, _ free: Int64) throws {
        guard free + ballast.size >= 2 * size else { return }
        ballast.grow(to: size)
        guard isCapped, ballast.size >= size else { return }
        try cap(false)
        try connection.run(.setCapped, 0)
    }

    /// Refuses a transaction that adds more new pages to the log than it could copy on a full disk.
    func requireRoom() throws {
        guard isShortOfRoom, let ballast = database.file?.ballast, let files else { return }
        let pages = try connection.pageCount()
        guard pages > pagesAtBegin else { return }
        let size = Int64(pages) * Int64(Connection.pageSize) - connection.fileSize
        let free = try files.freeSpace()
        if size <= Ballast.maxSize && free >= 2 * size { ballast.grow(to: size) }
        let room = ballast.size
        if size > (room > 0 ? room : free / 2) { throw StoreError.full }
    }
}
