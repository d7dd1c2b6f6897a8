internal import LarderCSQLite
public import LarderLocks

/// Detects commits of other stores by a look at memory.
///
/// It looks at the header of the log's index, which all processes share, and knows which of its changes are commits
/// of its own store. Each commit of another store begins an *epoch*: results of an older epoch must be looked up
/// again. A commit of the own store that switches an incarnation begins an epoch too.
///
/// Safety: the address is that of an aligned word of the counter's mapping, which lives as long as the counter.
@usableFromInline
package final class CommitWatch: Sendable {
    private let counter: CommitCounter?
    /// The address of the header's checksum, or of a word that never changes if there is no counter.
    @usableFromInline let address: UInt
    /// A Boolean value that indicates whether other stores can commit unseen: then every look begins an epoch.
    @usableFromInline let isBlind: Atomic<Bool>
    private let isPaused = Atomic(false)
    /// The checksum of the header that belongs to the epoch.
    @usableFromInline let known: Atomic<UInt64>
    @usableFromInline let current = Atomic<UInt32>(0)
    /// The epoch that the last commit of another store began, or the watch itself.
    private let foreign = Atomic<UInt32>(0)
    /// The epoch that the watch began.
    package var firstEpoch: UInt32 { first.load(ordering: .relaxed) }
    private let first = Atomic<UInt32>(0)
    /// Its lock guards the epoch.
    private let commits = Mutex(Commits())

    private struct Commits {
        /// The commit count after the store's own running commit.
        var own: UInt32?
        /// The commit count at the last look.
        var seen: UInt32 = 0
    }

    /// The last epoch of any watch.
    ///
    /// Epochs of two watches never match, because each watch belongs to another file.
    private static let last = Atomic<UInt32>(0)

    /// Without a counter no commit of another store is detected: in memory there is none, a file without a log is
    /// compared by its readers, and in other cases the watch is blind.
    package init(_ counter: CommitCounter?, isBlind: Bool) {
        self.counter = counter
        if let counter {
            address = counter.addressOfChecksum
        } else {
            let word = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
            word.initialize(to: 0)
            address = UInt(bitPattern: word)
        }
        self.isBlind = Atomic(isBlind)
        known = Atomic(0)
        commits.withLock { commits in
            let (checksum, changes) = look()
            commits.seen = changes
            begin(checksum, isForeign: true)
        }
        first.store(current.load(ordering: .relaxed), ordering: .relaxed)
    }

    deinit {
        if counter == nil { UnsafeMutableRawPointer(bitPattern: address)?.deallocate() }
    }

    /// A watch that never knows an epoch.
    package static let unsure = CommitWatch(nil, isBlind: true)

    /// An epoch in which nothing is known.
    @inlinable package static var noEpoch: UInt32 { 0 }

    /// Returns the current epoch if one look at memory is enough, or else ``noEpoch``.
    @inlinable @inline(__always)
    package var knownEpoch: UInt32 {
        checksum != known.load(ordering: .acquiring) || isUnsure ? Self.noEpoch : current.load(ordering: .acquiring)
    }

    /// Returns the current epoch: results that are read after this call are at least as new.
    ///
    /// While a commit of the own store ends, it returns ``noEpoch``.
    @usableFromInline
    package func epoch() -> UInt32 {
        let known = knownEpoch
        return known == Self.noEpoch ? settle() : known
    }

    /// A Boolean value that indicates whether commits of other stores are told from those of the own one.
    package var tellsStores: Bool { counter != nil && !isUnsure && !isPaused.load(ordering: .relaxed) }

    /// Returns the epoch that the last commit of another store began, or ``noEpoch`` if nothing is known of other stores.
    package func foreignEpoch() -> UInt32 {
        if !tellsStores { return Self.noEpoch }
        _ = epoch()
        return foreign.load(ordering: .acquiring)
    }

    /// Tells no stores from each other any more, since the file is suspended; what is known stays known.
    package func pause() { isPaused.store(true, ordering: .relaxed) }

    /// Makes every later look begin an epoch, since the file is closed.
    package func end() { isBlind.store(true, ordering: .releasing) }

    @inlinable @inline(__always) package var isUnsure: Bool { isBlind.load(ordering: .relaxed) }

    /// Called with the write lock of the database, immediately before COMMIT.
    ///
    /// - Returns: The epoch in which the written rows are valid.
    package func beginCommit() -> UInt32 {
        commits.withLock { commits in
            let (checksum, changes) = look()
            if isUnsure || checksum != known.load(ordering: .relaxed) {
                begin(checksum, isForeign: changes != commits.seen)
            }
            commits = Commits(own: changes &+ 1, seen: changes)
            return current.load(ordering: .relaxed)
        }
    }

    /// Called after the commit, or after it failed.
    ///
    /// - Returns: The epoch in which the writer's knowledge is true; nil if another store has committed.
    package func endCommit(isCommitted: Bool, switchesIncarnation: Bool) -> UInt32? {
        commits.withLock { commits in
            let (checksum, changes) = look()
            let isOurs = commits.own.map { (isCommitted && changes == $0) || changes == $0 &- 1 } ?? false
            let isForeign = !isOurs && changes != commits.seen
            commits = Commits(own: nil, seen: changes)
            if switchesIncarnation || !isOurs {
                begin(checksum, isForeign: isForeign)
            } else {
                known.store(checksum, ordering: .releasing)
            }
            return isOurs ? current.load(ordering: .relaxed) : nil
        }
    }

    /// Runs `body`, which commits once or not at all, and knows the commit as the own store's; it changes no row.
    package func ownCommit(_ body: () throws(SQLiteError) -> Void) throws(SQLiteError) {
        _ = beginCommit()
        do {
            try body()
        } catch {
            _ = endCommit(isCommitted: false, switchesIncarnation: false)
            throw error
        }
        _ = endCommit(isCommitted: true, switchesIncarnation: false)
    }

    /// Finds out which store has changed the header.
    private func settle() -> UInt32 {
        commits.withLock { commits in
            let (checksum, changes) = look()
            if isUnsure || checksum != known.load(ordering: .relaxed) {
                // This is the store's own commit, unless it has failed and another store has committed since.
                if !isUnsure, changes == commits.own { return Self.noEpoch }
                // The log begins again for the store's own commit.
                if isUnsure || commits.own.map({ changes != $0 &- 1 }) ?? true {
                    begin(checksum, isForeign: changes != commits.seen)
                    commits.seen = changes
                }
            }
            return current.load(ordering: .relaxed)
        }
    }

    /// Begins an epoch.
    ///
    /// A change of the header that is no commit begins one too: the log was copied, and begins again.
    private func begin(_ checksum: UInt64, isForeign: Bool) {
        var next = Self.noEpoch
        while next == Self.noEpoch { next = Self.last.wrappingAdd(1, ordering: .relaxed).newValue }
        if isForeign { foreign.store(next, ordering: .releasing) }
        current.store(next, ordering: .releasing)
        known.store(checksum, ordering: .releasing)
    }

    @inlinable @inline(__always)
    var checksum: UInt64 {
        // Never nil: the address of a mapping or of an allocation.
        #if canImport(Darwin)
        return UnsafePointer<UInt64>(bitPattern: address)?.loadedAtomically ?? 0
        #else
        guard let word = UnsafePointer<Atomic<UInt64>>(bitPattern: address) else { return 0 }
        return word.pointee.load(ordering: .acquiring)
        #endif
    }

    /// Returns the checksum with the number of commits that belongs to it.
    private func look() -> (checksum: UInt64, changes: UInt32) {
        guard let counter else { return (0, 0) }
        while true {
            let before = checksum
            let changes = counter.mark().changes
            if checksum == before { return (before, changes) }
        }
    }
}

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
    package func mark() -> CommitMark {
        CommitMark(header: larder_wal_header_read(page))
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

/// The state of the log at one moment: equal marks, equal contents.
package struct CommitMark: Sendable, Equatable {
    let header: larder_wal_header

    /// The word that rises by one with each commit, and starts again when the log is recovered after a crash.
    package var changes: UInt32 { larder_wal_header_changes(header) }

    package static func == (a: CommitMark, b: CommitMark) -> Bool {
        a.header.words == b.header.words
    }
}
