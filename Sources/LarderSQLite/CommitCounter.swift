internal import LarderCSQLite

/// Reports, from a look at memory, whether any connection in any process has committed.
///
/// It reads the header of the write-ahead log's index, which SQLite shares between processes, through a mapping of its
/// own. So it can be used after its connection was closed, and then no longer changes.
///
/// Safety: The page was mapped by this object, is unmapped in `deinit` alone, and is only read. Other processes write
/// to it, so a header counts only if its two copies are equal.
package final class CommitCounter: Sendable {
    /// The page's address.
    ///
    /// An integer, because a pointer is not `Sendable`; the memory at it is only ever read.
    private let address: UInt

    /// Returns nil if there is no shared memory to read: in memory, read-only without a live writer, other systems.
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

    /// Returns the current state of the index.
    ///
    /// Take it before the read whose validity it is to prove.
    package func stamp() -> CommitStamp {
        CommitStamp(header: larder_wal_header_read(page))
    }

    /// The address of the header's last word, for frequent checks: the checksum of all the others.
    ///
    /// It is valid as long as the counter lives.
    package var addressOfChecksum: UInt { address + 40 }

    /// The number of pages of the database since the last commit; 0 if the index does not have it.
    package var pages: Int { Int(larder_wal_pages(page)) }

    /// The number of frames in the log.
    package var frames: Int { Int(larder_wal_frames(page)) }

    /// The number of frames in the log that are not in the main file yet; copying them is no commit.
    package var uncopiedFrames: Int { frames - Int(larder_wal_moved(page)) }
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
