internal import Dispatch
package import LarderSQLite

/// Why a write was not made.
package enum WriteFailure: Error {
    /// SQLite failed; the transaction may be lost with it.
    case database(SQLiteError)
    /// It was refused before it touched anything; the other requests of its batch go on.
    case refused(CacheError)
}

/// What a request writes.
package enum WriteOperation: Sendable {
    /// Writes rows, in their order.
    ///
    /// `admits` is asked in the request's turn whether a row is to be written.
    case put([RowContent], admits: (@Sendable (Int) -> Bool)?)
    case remove([StoredKey])
    /// Removes a key and returns its row.
    case take(EntryTarget)
    /// Changes columns of an entry and leaves its payload.
    case change(EntryTarget, EntryChange)
    /// Removes rows that are still what they were when they were chosen.
    case evict([RowVictim], RemovalCause)
    /// Puts an empty generation in the place of the current one.
    case clear
    /// Anything else that is done to the rows of one cache.
    case cacheBlock(@Sendable (inout Connection, inout WritePlace) throws(WriteFailure) -> Void, BlockTraits)
    /// Anything else that is done to the store.
    case storeBlock(@Sendable (inout Connection, WriteContext) throws(WriteFailure) -> Void, BlockTraits)
    /// Writes nothing, and only waits for what its scope holds.
    case hold
}

/// What the queue has to know of a block.
package struct BlockTraits: Sendable {
    /// Several statements, so that it needs a savepoint to fail alone.
    var isCompound: Bool
    /// It needs a transaction of its own: it changes what other requests of a batch would go by.
    var isAlone: Bool
    /// How many pages it adds at most; 0 for a block that adds nothing, and may use the room that is kept for removals.
    var pages: Int

    package init(isCompound: Bool = true, isAlone: Bool = false, pages: Int = 0) {
        self.isCompound = isCompound
        self.isAlone = isAlone
        self.pages = pages
    }
}

/// A row to write.
package struct RowContent: Sendable {
    let key: StoredKey
    let content: WrittenContent

    package init(_ key: StoredKey, _ content: WrittenContent) {
        self.key = key
        self.content = content
    }
}

/// The entry that a request is about, if it has not expired by then.
package struct EntryTarget: Sendable {
    let key: StoredKey
    let rule: AgeRule
    /// When the caller asked.
    let now: Int64
    /// When the memory tier saw the entry accessed last.
    let accessedAt: Int64?

    package init(_ key: StoredKey, _ terms: AgeTerms, accessedAt: Int64?) {
        self.key = key
        rule = terms.rule
        now = terms.now()
        self.accessedAt = accessedAt
    }
}

/// A change of an entry that leaves its payload.
package struct EntryChange: Sendable {
    /// A Boolean value that indicates whether the entry counts as written, for the order of eviction.
    let isWrite: Bool
    let apply: @Sendable (inout SealedColumns) -> Void

    package init(isWrite: Bool, _ apply: @escaping @Sendable (inout SealedColumns) -> Void) {
        self.isWrite = isWrite
        self.apply = apply
    }
}

/// What a request has changed.
@usableFromInline
package struct WriteOutcome: Sendable {
    /// The rows that were written or removed, by their position in the request.
    @usableFromInline package var indices: [Int] = []
    /// The revision of the first row of the request; the next ones count on from it.
    @usableFromInline package var revision: Int64 = 0
    /// The validation epoch in which the rows are true.
    @usableFromInline package var round: UInt32 = 0
    /// The row that was removed, unless it had expired.
    var row: EntryRow?
    /// The new generation of a cache that was cleared, and the id of the old one.
    var generation: (new: Generation, old: Int64)?

    /// A Boolean value that indicates whether anything was changed.
    package var isChange: Bool { !indices.isEmpty }

    /// The position of the only row, which is not allocated for each request.
    static let only = [0]
}

/// What a request changes in the memory tier.
@usableFromInline
package struct MemoryEffect: Sendable {
    /// The request's turn has come: a load that began earlier does not store its value over what is written now.
    ///
    /// Returns the number of the last access, which the revision of the write has to exceed. May be called again.
    @usableFromInline let begin: @Sendable (inout Discards) -> Int64
    /// The request is committed, and no later one is.
    @usableFromInline let apply: @Sendable (WriteOutcome, inout Discards) -> Void
    /// Marks the keys as being committed, or takes the mark back; nil where one key is written alone.
    let mark: (@Sendable (Bool, inout Discards) -> Void)?

    @inlinable
    package init(
        begin: @escaping @Sendable (inout Discards) -> Int64,
        apply: @escaping @Sendable (WriteOutcome, inout Discards) -> Void
    ) {
        self.init(begin: begin, apply: apply, mark: nil)
    }

    @usableFromInline
    init(
        begin: @escaping @Sendable (inout Discards) -> Int64,
        apply: @escaping @Sendable (WriteOutcome, inout Discards) -> Void,
        mark: (@Sendable (Bool, inout Discards) -> Void)?
    ) {
        self.begin = begin
        self.apply = apply
        self.mark = mark
    }
}

/// A write on its way from the call that asks for it to its commit, and back with what came of it.
///
/// Safety: a request has one owner at a time, and is touched by no other thread. Its caller owns it until the queue takes
/// it and again when it is done; in the meantime the thread that leads the queue owns it. The queue's lock is taken between
/// any two owners. `waiter`, `isDone` and `isAppointed` are touched under that lock only.
@usableFromInline
package final class WriteRequest: @unchecked Sendable {
    /// Who waits for it.
    enum Waiter {
        case thread(DispatchSemaphore?)
        case task(CheckedContinuation<Void, Never>)
    }

    package let operation: WriteOperation
    let scope: WriteScope
    /// The cache whose rows it changes; nil for a request to the whole store.
    let ledger: RowLedger?
    private let effect: MemoryEffect?
    /// What a block changes in memory once it is committed.
    private let applyBlock: (@Sendable (inout Discards) -> Void)?

    /// What came of it.
    package var outcome = WriteOutcome()
    /// Where it was made, and what has to follow it.
    package var place: WritePlace?
    /// Why it was not made.
    package var error: CacheError?
    /// What it displaced; released with the request.
    package var discards = Discards()
    private var isPerformed = false
    private var isMarked = false

    var waiter = Waiter.thread(nil)
    var isDone = false
    /// A Boolean value that indicates whether its thread is to lead the queue.
    var isAppointed = false

    /// A write to the rows of one cache.
    ///
    /// - Parameter scope: Nil for what the operation touches; another one where the caller holds that.
    package init(
        _ operation: WriteOperation, to ledger: RowLedger, scope: WriteScope? = nil, _ effect: MemoryEffect? = nil,
        apply: (@Sendable (inout Discards) -> Void)? = nil
    ) {
        self.operation = operation
        self.ledger = ledger
        self.scope = scope ?? operation.scope(in: ledger.identity)
        self.effect = effect
        applyBlock = apply
    }

    /// A write to the store.
    package init(
        _ operation: WriteOperation, scope: WriteScope = .unheld, apply: (@Sendable (inout Discards) -> Void)? = nil
    ) {
        self.operation = operation
        self.scope = scope
        ledger = nil
        effect = nil
        applyBlock = apply
    }

    // MARK: - What the thread that leads the queue calls

    /// Writes, inside a transaction; may be called again, in another one.
    package func perform(_ connection: inout Connection, _ context: WriteContext) throws(WriteFailure) {
        (error, isPerformed) = (nil, false)
        if let ledger {
            try ledger.perform(self, &connection, context)
        } else if case .storeBlock(let body, _) = operation {
            try body(&connection, context)
        }
        isPerformed = true
    }

    /// Makes known in memory what was committed.
    package func apply() {
        if isGood {
            if let ledger { ledger.apply(self) } else { applyBlock?(&discards) }
        }
        unmark()
    }

    /// Keeps results of loads and reads that are older than this write from being kept.
    ///
    /// - Returns: The number that the revision of the write has to exceed.
    func begin() -> Int64 {
        mark()
        return effect?.begin(&discards) ?? 0
    }

    /// Changes the memory tier.
    func applyEffect() {
        effect?.apply(outcome, &discards)
        applyBlock?(&discards)
    }

    /// Marks its keys as being committed: until ``unmark()`` no read brings them into memory.
    func mark() {
        guard !isMarked, let mark = effect?.mark else { return }
        isMarked = true
        mark(true, &discards)
    }

    /// Takes the mark back.
    func unmark() {
        guard isMarked, let mark = effect?.mark else { return }
        isMarked = false
        mark(false, &discards)
    }

    /// A Boolean value that indicates whether it was made, and nothing has failed since.
    package var isGood: Bool { isPerformed && error == nil }
}

extension WriteOperation {
    /// Several statements, so that it needs a savepoint to fail alone.
    var isCompound: Bool {
        switch self {
        case .put(let rows, _): rows.count > 1
        case .remove(let keys): keys.count > 1
        case .take, .change, .evict, .clear: true
        case .cacheBlock(_, let traits), .storeBlock(_, let traits): traits.isCompound
        case .hold: false
        }
    }

    /// It needs a transaction of its own: it changes what other requests of a batch would go by.
    var isAlone: Bool {
        switch self {
        case .clear: true
        case .cacheBlock(_, let traits), .storeBlock(_, let traits): traits.isAlone
        default: false
        }
    }

    /// Whether it writes at all.
    var isWriting: Bool { if case .hold = self { false } else { true } }

    /// How many pages it adds at most; 0 for what adds nothing, and may use the room that is kept for removals.
    var pages: Int {
        switch self {
        case .put(let rows, _): rows.count == 1 ? rows[0].content.pages : .max
        case .change: .max
        case .cacheBlock(_, let traits), .storeBlock(_, let traits): traits.pages
        case .remove, .take, .evict, .clear, .hold: 0
        }
    }

    /// What it touches.
    fileprivate func scope(in cache: ObjectIdentifier) -> WriteScope {
        switch self {
        case .put(let rows, _) where rows.count == 1: .key(HeldKey(cache, rows[0].key))
        case .remove(let keys) where keys.count == 1: .key(HeldKey(cache, keys[0]))
        case .take(let target), .change(let target, _): .key(HeldKey(cache, target.key))
        case .put, .remove, .evict, .clear: .cache(cache)
        case .cacheBlock, .storeBlock, .hold: .unheld
        }
    }
}
