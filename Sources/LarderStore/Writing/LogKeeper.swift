internal import LarderSQLite

/// Has the log copied into the main file in time, and on a full disk at all.
///
/// The ballast is a file whose blocks become the log's if the disk is full. While the disk is short of room, the log holds no more
/// new pages than the ballast has, so it can be copied. Once the ballast was given up, no transaction adds pages until the disk has
/// room again.
struct LogKeeper: ~Copyable {
    /// Holds the write lock while the log is copied; nil if there is no log to copy.
    private var guardian: Connection?
    /// The number of pages that are not in the main file yet at which the log is copied next.
    private var nextPages = Ballast.pages
    private var isScheduled = false
    /// True after a copy that has failed, which is reported once.
    private var isFailing = false
    /// True once the ballast was given up: no transaction adds pages.
    private(set) var isFull = false
    /// True if there is less than four times the largest ballast: the log is copied sooner.
    private(set) var isShort = false
    /// The number of pages of the database above which the log is copied: the ballast has room for no more.
    private var mostPages = Int.max

    var hasGuardian: Bool { guardian != nil }
    private var interval: Int { isShort ? Ballast.pages / 5 : Ballast.pages }

    /// Begins with a file that was opened.
    mutating func begin(_ guardian: consuming Connection?, _ connection: borrowing Connection, _ database: Database) {
        self.guardian = guardian
        isFull = false
        lookAtRoom(connection, database)
        (nextPages, isScheduled) = (interval, false)
    }

    /// Ends with the file.
    mutating func end() { guardian = nil }

    // MARK: The log

    /// Returns whether the log may not grow further on a disk that is short of room.
    func needsCopy(_ uncopied: Int) -> Bool { isShort && uncopied >= interval }

    /// Returns whether the log is long and the caller is to have it copied; true once until it is copied.
    ///
    /// - Parameter pages: The number of pages of the database.
    mutating func schedulesCopy(_ uncopied: Int, pages: Int) -> Bool {
        guard !isScheduled, uncopied >= nextPages || pages > mostPages else { return false }
        isScheduled = true
        // After a copy in vain the next one is not put off as long.
        nextPages = uncopied + (uncopied < 2 * interval ? interval : 100)
        return true
    }

    /// Returns whether the log has grown as long again since the copy was scheduled.
    func isOverdue(_ uncopied: Int) -> Bool { isScheduled && uncopied >= nextPages }

    /// Copies the log into the main file, and returns what is to be reported.
    ///
    /// If that fails or a long read holds the log up, in this process or another one, it is tried again 100 pages later.
    mutating func copy(_ connection: inout Connection, of database: Database, _ readers: Readers?) -> StoreEvent? {
        isScheduled = false
        nextPages = database.uncopiedPages(connection) + 100
        // A log that may not grow, or has grown without bound, is worth the wait for long reads.
        readers?.release(waits: isShort || connection.logPages > 16 * Ballast.pages)
        var event: StoreEvent?
        do {
            if guardian != nil, try connection.checkpoint(guardedBy: &guardian!) {
                nextPages = interval
                if isFailing { event = .logCopied }
                isFailing = false
            }
        } catch {
            if !isFailing { event = .logNotCopied(StoreError(error)) }
            isFailing = true
        }
        lookAtRoom(connection, database)
        // It is tried again because of the pages of the log alone.
        if database.uncopiedPages(connection) > 0 { mostPages = .max }
        // A read transaction that began in the meantime keeps the log from beginning again.
        readers?.release()
        return event
    }

    /// Notes that the log has begun again.
    mutating func noteEmptied() { nextPages = interval }

    // MARK: The room on the disk

    /// Looks how much of the disk is free.
    ///
    /// If it is twice what the ballast should have, that is made so long, and the disk is full no more. If it is less than
    /// four times what the largest ballast has, the log is copied sooner.
    private mutating func lookAtRoom(_ connection: borrowing Connection, _ database: Database) {
        guard let file = database.file, guardian != nil else { return }
        do {
            guard let free = try database.files?.freeSpace() else { return }
            isShort = free < 4 * Ballast.maxSize
            let size = Ballast.size(for: max(connection.fileSize, Self.bytes(ofPages: database.counter?.pages ?? 0)))
            grow(file.ballast, to: size, free, connection)
            if free >= 2 * size && (file.ballast.size >= size || !isShort) { isFull = false }
        } catch {}
    }

    /// Makes the ballast so long if twice that is free, and notes at how many pages the log has to be copied.
    private mutating func grow(_ ballast: Ballast, to size: Int64, _ free: Int64, _ connection: borrowing Connection) {
        if free + ballast.size >= 2 * size { ballast.grow(to: size) }
        let reserved = ballast.size
        // Where no file gets blocks of its own, a full disk cannot be prepared for.
        mostPages = reserved == 0 ? .max : Int((connection.fileSize + reserved) / Self.bytes(ofPages: 1))
    }

    private static func bytes(ofPages count: Int) -> Int64 { Int64(count) * Int64(Connection.pageSize) }

    /// Gives the blocks of the ballast to the log, for removals and changes, and returns whether the log is to be copied: before
    /// a commit, which would need blocks for the log.
    mutating func releaseBallast(_ connection: borrowing Connection, _ database: Database) throws -> Bool {
        guard let file = database.file else { throw SQLiteError.noRoom }
        if isFull {
            lookAtRoom(connection, database)
            if !isFull { return false }
        }
        (isFull, isShort) = (true, true)
        file.ballast.release()
        return true
    }

    /// Refuses a transaction that adds pages on a full disk, or more of them than the log could copy on one.
    ///
    /// A transaction of a few changes cannot, unless the disk is short of room.
    ///
    /// - Parameter before: The number of pages before the transaction.
    mutating func requireRoom(
        _ connection: inout Connection, _ database: Database, changes: Int, pagesBefore before: Int
    ) throws {
        guard isShort || changes > 4, let ballast = database.file?.ballast, let files = database.files else { return }
        let pages = try connection.pageCount()
        guard pages > before, isShort || pages > mostPages else { return }
        if isFull { throw StoreError.full }
        let (size, free) = (Self.bytes(ofPages: pages) - connection.fileSize, try files.freeSpace())
        isShort = free < 4 * Ballast.maxSize
        grow(ballast, to: Ballast.size(for: Self.bytes(ofPages: pages)), free, connection)
        guard isShort else { return }
        let reserved = ballast.size
        if size > (reserved > 0 ? reserved : free / 2) { throw StoreError.full }
    }
}

extension Database {
    /// The number of pages of the log that are not in the main file yet, in whatever process they were written.
    func uncopiedPages(_ connection: borrowing Connection) -> Int { counter?.uncopiedFrames ?? connection.logPages }
}
