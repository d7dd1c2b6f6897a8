internal import Synchronization

/// What is known of the current database without asking it.
package struct StorePresent: Sendable {
    package let database: Int
    package let watch: CommitWatch
    /// Whether copies in memory of what it holds can be kept true.
    package let allowsCopies: Bool
    /// Where large payloads are; nil in memory.
    package let blobs: BlobFolder?
}

/// The sub-caches in use, or with something left to write down, by name.
package final class LiveCaches: Sendable {
    private let ledgers = Mutex<[ExactName: RowLedger]>([:])

    /// Held by the one who opens a sub-cache, over its work on disk.
    private let opening = Mutex(())

    /// The thread that does; 0 for none.
    private let opener = Atomic<UInt>(0)

    package init() {}

    /// Runs `body` while nobody else opens a sub-cache.
    package func opening<R>(_ body: () throws(CacheError) -> R) throws(CacheError) -> R {
        try opening.withLock { _ throws(CacheError) in
            opener.store(CurrentThread.identity, ordering: .relaxed)
            defer { opener.store(0, ordering: .relaxed) }
            return try body()
        }
    }

    /// Whether this thread opens a sub-cache: no code of the user's may run on it, which may open one too.
    package var areOpenedHere: Bool { opener.load(ordering: .relaxed) == CurrentThread.identity }

    /// The one of a name, compared as bytes.
    package subscript(name: String) -> RowLedger? {
        get { ledgers.withLock { $0[ExactName(name)] } }
        set {
            let old = ledgers.withLock { ledgers in
                let old = ledgers[ExactName(name)]
                ledgers[ExactName(name)] = newValue
                return old
            }
            _ = consume old
        }
    }

    /// What came of an attempt to join a sub-cache in use.
    package enum Attachment {
        case attached(any LedgerFront, handle: Int)
        /// Its front is not what the caller wants.
        case unwanted
        /// It is no longer the one of its name.
        case gone
    }

    /// Adds a handle to the front of a ledger that is in use, or to one that `make` gives.
    package func attach(
        _ ledger: RowLedger, _ rule: AgeRule, isWanted: (any LedgerFront) -> Bool, make: () -> any LedgerFront
    ) -> Attachment {
        ledgers.withLock { ledgers in
            guard ledgers[ExactName(ledger.name)] === ledger else { return .gone }
            let front = ledger.front ?? make()
            guard isWanted(front) else { return .unwanted }
            return .attached(front, handle: ledger.attach(front, rule))
        }
    }

    /// Runs `body` while nobody attaches a handle.
    package func whileNobodyAttaches<R>(_ body: () -> R) -> R { ledgers.withLock { _ in body() } }

    /// Forgets one that nobody uses and that has nothing left to write down.
    package func drop(_ ledger: RowLedger) {
        guard ledger.front == nil, ledger.isSettled else { return }
        let dropped = ledgers.withLock { ledgers -> RowLedger? in
            let name = ExactName(ledger.name)
            return ledgers[name] === ledger && ledger.front == nil ? ledgers.removeValue(forKey: name) : nil
        }
        dropped?.cancelFlush()
    }

    /// Lets go of all, and of what they wait for: the store is closed.
    package func abandon() {
        let abandoned = ledgers.withLock { ledgers in
            defer { ledgers = [:] }
            return Array(ledgers.values)
        }
        for ledger in abandoned {
            ledger.cancelFlush()
            ledger.front?.stopExpiry()
        }
    }

    /// All of them.
    package var all: [RowLedger] { ledgers.withLock { Array($0.values) } }

    // MARK: - Those that stand apart

    private struct WeakLedger: Sendable {
        weak var ledger: RowLedger?
    }

    /// What readers have opened before it was there: in nobody's way, so under no name.
    private let apart = Mutex<[WeakLedger]>([])

    /// Adds one that stands apart for as long as somebody has it.
    package func addApart(_ ledger: RowLedger) {
        apart.withLock { apart in
            apart.removeAll { $0.ledger == nil }
            apart.append(WeakLedger(ledger: ledger))
        }
    }

    /// All of them, with those that stand apart.
    package var everyone: [RowLedger] { all + apart.withLock { $0.compactMap(\.ledger) } }

    /// The ages of the handles that stand apart from the one of a name.
    package func rulesApart(from name: String) -> [AgeRule] {
        let found = apart.withLock { $0.compactMap(\.ledger) }
        return found.filter { ExactName($0.name) == ExactName(name) && !$0.isSuperseded }.flatMap(\.ownRules)
    }
}
