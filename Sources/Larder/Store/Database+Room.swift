internal import LarderSQLite
internal import Synchronization

/// What a database keeps of its volume, so that it can be emptied when that is full.
///
/// Two things are always there, in blocks of the files' own: a place in the main file for every page that was committed,
/// so that the log can be copied; and a log's file of some length, so that once it was copied a removal can be written.
/// Neither is ever given away, so a crash leaves nothing to be put in order.
final class DatabaseRoom: Sendable {
    /// The length of the log, in pages, at which a checkpoint pays: less where little is free.
    var payingLength: Int { paying.load(ordering: .relaxed) }

    /// The bytes that the log's file has whatever is in it; 0 as long as nobody has looked.
    var logBytes: Int { log.load(ordering: .relaxed) }

    fileprivate let paying = Atomic(Database.checkpointPages)
    fileprivate let log = Atomic(0)

    /// How many pages have their place in the main file, as far as we know; 0 where that has to be looked at.
    fileprivate let placed = Atomic(0)

    /// The pages that a write which adds something leaves for those that remove.
    static let sparePages = 16

    /// How many pages the main file is given at a time.
    static let stepPages = 64

    /// The log's file, where the volume is not small: 47 pages, of which a removal takes 20 where all goes wrong.
    static let mostLogBytes: Int64 = 192 << 10

    /// What a volume gets of its log, and where even that is too little for one write.
    static let logShare: Int64 = 16
    static let leastLogBytes: Int64 = 64 << 10

    /// The share of what is free that a log may take before it is copied.
    static let freeShare: Int64 = 4
    static let leastPayingLength: Int64 = 32

    /// What a frame of the log has beside its page.
    private static let frameHead: Int64 = 24

    /// - Parameter pages: How many the database has: a removal writes no more than all of them.
    fileprivate func note(_ space: (total: Int64, free: Int64), pages: Int) {
        let length = space.free / Self.freeShare / Int64(Connection.pageSize)
        paying.store(
            Int(min(max(length, Self.leastPayingLength), Int64(Database.checkpointPages))), ordering: .relaxed)
        let most = min(max(space.total / Self.logShare, Self.leastLogBytes), Self.mostLogBytes)
        log.store(Int(min(most, Int64(pages) * (Int64(Connection.pageSize) + Self.frameHead))), ordering: .relaxed)
    }
}

extension Database {
    /// Gives what the open transaction has added its place in the main file, or throws that there is no room.
    ///
    /// On the ordinary path it looks at memory, and compares.
    ///
    /// - Parameter growth: How many pages that is at most, as far as anybody knows; 0 where nothing is added.
    func giveRoom(_ connection: inout Connection, adding growth: Int) throws(SQLiteError) {
        guard identity != nil else { return }
        let spare = growth > 0 ? DatabaseRoom.sparePages : 0
        let placed = room.placed.load(ordering: .relaxed)
        if let counter, growth < placed {
            // We have the write lock, so this is what the transaction began with.
            let before = counter.pages
            if before > 0, before + max(growth, Self.pagesOfRemoval) + spare <= placed { return }
        }
        let pages = try connection.pageCount()
        let needed = pages + spare
        if needed <= placed { return }
        let space = space()
        if let space { keepLog(&connection, space, pages) }
        for count in [pages + DatabaseRoom.sparePages + DatabaseRoom.stepPages, needed] {
            guard connection.reserve(pages: count) else { continue }
            return room.placed.store(count, ordering: .relaxed)
        }
        // Where the file system cannot do it, nobody is refused for that.
        guard let space, space.free >= Int64(DatabaseRoom.stepPages * Connection.pageSize) else { throw .noRoom }
        room.placed.store(pages + DatabaseRoom.stepPages, ordering: .relaxed)
    }

    /// What a removal adds at most, by pages that are no longer shared.
    private static let pagesOfRemoval = 8

    /// Notes how long the log is after a commit; if somebody else has copied it, the main file was cut.
    func noteCommit(_ connection: inout Connection) {
        let pages = connection.logPages
        if logPages.exchange(pages, ordering: .relaxed) > pages { room.placed.store(0, ordering: .relaxed) }
    }

    /// After a checkpoint, which has cut the main file to its length: gives it what is kept for removals again.
    ///
    /// Called while nobody else can write.
    func keepRoom(_ connection: inout Connection) {
        guard identity != nil else { return }
        room.placed.store(0, ordering: .relaxed)
        do throws(SQLiteError) {
            let pages = try connection.pageCount()
            if let space = space() { keepLog(&connection, space, pages) }
            let needed = pages + min(pages, DatabaseRoom.sparePages)
            if connection.reserve(pages: needed) { room.placed.store(needed, ordering: .relaxed) }
        } catch {
            // The next commit looks again.
        }
    }

    /// Gives the log's file its length, where that leaves room for others.
    private func keepLog(_ connection: inout Connection, _ space: (total: Int64, free: Int64), _ pages: Int) {
        room.note(space, pages: pages)
        if room.payingLength < checkpointAt.load(ordering: .relaxed) {
            checkpointAt.store(room.payingLength, ordering: .relaxed)
        }
        guard space.free / DatabaseRoom.freeShare >= Int64(room.logBytes) else { return }
        _ = connection.reserveLog(bytes: room.logBytes)
    }

    /// The bytes of our volume; nil if nobody can tell.
    private func space() -> (total: Int64, free: Int64)? {
        do throws(SystemError) {
            return try blobs?.space()
        } catch {
            return nil
        }
    }

    /// How often, and after how many milliseconds, the log is looked at again while somebody stands in it: an idle reader
    /// of another process lets go after a second.
    private static let (looks, pause): (Int, Int32) = (60, 20)

    /// A log of no more pages was just started anew, by a commit that changes nothing.
    private static let tinyLog = 1

    /// On a full volume: gives up the files that wait to be used again, copies the log, and starts it anew in the room that
    /// its file has.
    ///
    /// - Returns: Whether anything came of that, so that a write may find room now.
    @discardableResult
    package func regainRoom() -> Bool {
        guard let blobs else { return false }
        var isMade = blobs.poolFigures.count > 0
        do {
            if isMade { try blobs.emptyPool() }
            for look in 0..<Self.looks {
                if look > 0 { CurrentThread.pause(milliseconds: Self.pause) }
                if isInTransaction { break }
                // Another process writes, or stands in the log.
                guard let result = try checkpoint(), result.isComplete else { continue }
                if result.logPages <= Self.tinyLog, logFileSize <= room.logBytes { break }
                do throws(SQLiteError) {
                    try startLogAnew()
                } catch {
                    // Behind the end of a log that somebody stands in there is no room.
                    guard error.isAboutRoom else { throw error }
                    continue
                }
                if writtenPages <= Self.tinyLog {
                    isMade = true
                    break
                }
            }
        } catch {
            // Whoever asked has an error of their own to throw.
        }
        return isMade
    }

    private var isInTransaction: Bool { writer.withLock { $0 == nil || $0!.exclusive != nil } }

    /// The bytes that come back to the volume once the log is copied and nobody stands in it: those of empty pages, also
    /// of such as are cut off already, and those of a log that is so long that it is cut.
    func owedBytes() throws(SQLiteError) -> Int64 {
        try writer.withLock { writer throws(SQLiteError) -> Int64 in
            guard writer != nil else { return 0 }
            let kept = try writer!.connection.pageCount() - (try writer!.connection.freePages())
            let pages = Int64(kept + DatabaseRoom.sparePages + DatabaseRoom.stepPages)
            let file = max(0, writer!.connection.fileSize - pages * Int64(Connection.pageSize))
            let log = writer!.connection.logFileSize
            return file + Int64(log > longestKeptLog ? log - room.logBytes : 0)
        }
    }

    var logFileSize: Int { writer.withLock { $0 == nil ? 0 : $0!.connection.logFileSize } }
}
