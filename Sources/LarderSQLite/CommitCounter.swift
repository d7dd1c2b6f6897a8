internal import LarderCSQLite

/// Tells, by a look at memory, whether any connection in any process has committed.
///
/// It reads the header of the write-ahead log's index, which SQLite shares between processes, through a mapping of its
/// own: it may be asked after the connection it came from was closed, and then no longer moves.
///
/// Safety: The page was mapped by this object, is unmapped in `deinit` alone, and is only read. Other processes write
/// to it, so a header counts only if its two copies are equal.
package final class CommitCounter: Sendable {
    /// The page's address.
    ///
    /// An integer, because a pointer is not `Sendable`; what it points to is only ever read.
    private let address: UInt

    /// Nil where there is no shared memory to read: in memory, read-only without a live writer, other systems.
    ///
    /// The connection must have read something, so that SQLite has the index open.
    package init?(of connection: borrowing Connection) {
        guard let region = larder_wal_index(connection.handle), let page = larder_map_again(region) else { return nil }
        address = UInt(bitPattern: page)
    }

    deinit {
        larder_unmap(page)
    }

    private var page: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: address) }

    /// What the index says now.
    ///
    /// Take it before the read it is to vouch for.
    package func stamp() -> CommitStamp {
        CommitStamp(header: larder_wal_header_read(page))
    }

    /// Where the last word of the header stands, for those who look at it often: the checksum of all the others.
    ///
    /// It is good as long as the counter lives.
    package var addressOfChecksum: UInt { address + 40 }

    /// How many pages the database has since the last commit; 0 where the index does not tell.
    package var pages: Int { Int(larder_wal_pages(page)) }

    /// How far the log has grown and been copied, which the stamp does not tell: no commit, no change of it.
    func log() -> LogState {
        LogState(frames: larder_wal_frames(page), moved: larder_wal_moved(page))
    }

    /// The number of frames in the log.
    package var frames: Int { Int(log().frames) }

    /// The number of frames in the log that are not in the main file yet.
    package var uncopiedFrames: Int {
        let log = log()
        return Int(log.frames) - Int(log.moved)
    }

    /// Whether nobody has committed since `stamp` was taken.
    package func stands(at stamp: CommitStamp) -> Bool {
        larder_wal_header_equals(page, stamp.header) != 0
    }
}

/// How many frames the log has, and how many of them are in the main file too.
struct LogState: Sendable, Equatable {
    let frames: UInt32
    let moved: UInt32
}

/// The state of the log at one moment: equal stamps, equal contents.
package struct CommitStamp: Sendable, Equatable {
    let header: larder_wal_header

    /// The word that rises by one with each commit, and starts again when the log is recovered after a crash.
    package var changes: UInt32 { larder_wal_header_changes(header) }

    package static func == (a: CommitStamp, b: CommitStamp) -> Bool {
        a.header.words == b.header.words
    }
}
