package import LarderSQLite
public import Synchronization

/// Tells by a look at memory whether what we know of the database is still what it holds.
///
/// It looks at the header of the log's index (see `CommitCounter`), and knows which of its changes were commits of our
/// own. A commit of anybody else begins a new *round*: what was true in an older one has to be looked up again.
@usableFromInline
package final class CommitWatch: Sendable {
    /// Where the checksum of the header stands; a word of our own where nobody else can commit.
    @usableFromInline let address: UInt

    /// The checksum that goes with the round.
    @usableFromInline let known: Atomic<UInt64>

    /// Another one with every commit of somebody else's that was noticed.
    ///
    /// Rounds of two watches are never the same, but for those of a blind one, of which nothing is kept: what was true of one
    /// database says nothing of the next.
    @usableFromInline let rounds = Atomic<UInt32>(CommitWatch.newRound())

    /// The last round of any watch.
    private static let lastRound = Atomic<UInt32>(0)

    /// Stands for a round that never is.
    package static let noRound: UInt32 = 0

    private static func newRound() -> UInt32 {
        let round = lastRound.wrappingAdd(1, ordering: .relaxed).newValue
        return round == noRound ? newRound() : round
    }

    private let counter: CommitCounter?

    /// Whether others may commit unseen: then every look begins a round.
    private let isBlind: Bool

    /// What our own commit will make of the counter, while one is under way; guards every change of the round.
    private let ownCommit: Mutex<UInt32?>

    /// Watches `counter`; without one every commit is our own, as in memory, or others commit unseen.
    package init(_ counter: CommitCounter?, isBlind: Bool = false) {
        self.counter = counter
        self.isBlind = isBlind
        ownCommit = Mutex(nil)
        if let counter {
            address = counter.addressOfChecksum
        } else {
            let word = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
            word.initialize(to: 0)
            address = UInt(bitPattern: word)
        }
        known = Atomic(0)
        known.store(checksum, ordering: .releasing)
    }

    deinit {
        if counter == nil { UnsafeMutableRawPointer(bitPattern: address)?.deallocate() }
    }

    /// The header's checksum now.
    ///
    /// Safety: the address is that of an aligned word that lives as long as this object, and is only read.
    @inlinable @inline(__always)
    var checksum: UInt64 {
        // Never nil: the address of a mapping or of an allocation.
        guard let word = UnsafePointer<Atomic<UInt64>>(bitPattern: address) else { return 0 }
        return word.pointee.load(ordering: .acquiring)
    }

    /// Whether nobody has committed since the round began, as far as one look can tell; if not, ask ``round()``.
    @inlinable @inline(__always)
    package var isQuiet: Bool { checksum == known.load(ordering: .acquiring) }

    /// The number of the round that is known of.
    @inlinable @inline(__always)
    package var knownRound: UInt32 { rounds.load(ordering: .acquiring) }

    /// The round of now: what is read after this call is at least as new.
    package func round() -> UInt32 {
        if isBlind { return nextRound() }
        if !isQuiet { settle() }
        return knownRound
    }

    /// Looks whose commit it was that changed the header.
    @usableFromInline
    package func settle() {
        ownCommit.withLock { own in
            let (checksum, changes) = look()
            if checksum == known.load(ordering: .relaxed) { return }
            // Ours, or only the log begun anew for it: what the fronts hold is true until we say otherwise.
            if let own, changes == own || changes == own &- 1 { return }
            begin(checksum)
        }
    }

    /// Called with the write lock of the database: nobody else commits until ``endCommit()``.
    ///
    /// - Returns: The round in which what is written now is true.
    package func beginCommit() -> UInt32 {
        if isBlind { return nextRound() }
        return ownCommit.withLock { own in
            let (checksum, changes) = look()
            if checksum != known.load(ordering: .relaxed) { begin(checksum) }
            own = changes &+ 1
            return rounds.load(ordering: .relaxed)
        }
    }

    /// Nothing is going to be committed after all: whoever commits from here on is somebody else.
    ///
    /// Called with the write lock of the database.
    package func abandonCommit() { ownCommit.withLock { $0 = nil } }

    /// Called after the commit, or after what should have become one failed.
    package func endCommit(isCommitted: Bool) {
        if isBlind { return }
        ownCommit.withLock { own in
            let (checksum, changes) = look()
            defer { own = nil }
            if checksum == known.load(ordering: .relaxed) { return }
            if let own, (isCommitted && changes == own) || changes == own &- 1 {
                known.store(checksum, ordering: .releasing)
            } else {
                begin(checksum)
            }
        }
    }

    private func nextRound() -> UInt32 {
        // Nothing is kept of these, and there are as many as reads.
        if isBlind { return max(1, rounds.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue) }
        let round = Self.newRound()
        rounds.store(round, ordering: .releasing)
        return round
    }

    private func begin(_ checksum: UInt64) {
        _ = nextRound()
        known.store(checksum, ordering: .releasing)
    }

    /// The checksum with the count of commits that belongs to it.
    private func look() -> (checksum: UInt64, changes: UInt32) {
        guard let counter else { return (checksum, 0) }
        while true {
            let before = checksum
            let changes = counter.stamp().changes
            if checksum == before { return (before, changes) }
        }
    }
}
