internal import Dispatch
package import LarderSQLite
internal import Synchronization

/// What a queue commits with.
package protocol WriteCommitter: AnyObject, Sendable {
    /// Runs a body in one transaction.
    ///
    /// - Parameter pages: How many pages it adds at most; 0 where it adds nothing, and may use what is kept for removals.
    func commit(
        adding pages: Int, _ body: @Sendable (inout Connection, WriteContext) throws(SQLiteError) -> Void
    ) throws(CacheError)

    /// A batch was committed and made known; the leader calls it before the next one begins.
    func batchIsOver()

    /// Called by a thread that leads no more: what it met on the way may be told now.
    func tellUntold()
}

/// Where writes wait: whoever finds nobody writing leads, and commits everything that waits in one transaction.
///
/// A single thread pays for one commit, a hundred tasks share one. The leader makes a batch known in memory, in its
/// order, before the next one begins, so that memory and disk never disagree. Then it wakes the others and hands the
/// lead to one of them; tasks, which wait on no thread, are led by a thread of the system's.
package final class WriteQueue: Sendable {
    fileprivate struct State {
        var waiting: [QueuedWrite] = []
        /// Those that something is held against, in their order.
        var deferred: [QueuedWrite] = []
        var isLed = false
        /// The thread that leads.
        var leader: UInt?
        /// Whether the lead waits for a thread of the system's that has not begun.
        var isOffered = false
        var holds: Set<WriteHold> = []
        var transactions = 0
        /// How many writes the last batch had.
        var lastBatch = 0
    }

    private let state = Mutex(State())

    /// How many writes share a transaction at most.
    package static let batchLimit = 512

    /// A batch that is being committed, and the next one.
    package let room = WriteRoom(2 * batchLimit)

    package init() {}

    /// How many transactions were committed.
    package var transactions: Int { state.withLock { $0.transactions } }

    /// How many writes wait for their turn, or for what is held to be released.
    package var waitingCount: Int { state.withLock { $0.waiting.count + $0.deferred.count } }

    /// Whether this thread leads: nobody's write goes on before it does, so it must not run code of the user's.
    package var isLedHere: Bool { state.withLock { $0.leader == CurrentThread.identity } }

    /// Does a write on this thread, or waits for the one that does it.
    package func run<R>(_ ticket: WriteTicket<R>, _ committer: any WriteCommitter) throws(CacheError) -> R {
        wait(for: ticket.write, committer)
        committer.tellUntold()
        return try ticket.outcome()
    }

    /// Does a write on some other thread.
    package func run<R>(_ ticket: WriteTicket<R>, _ committer: any WriteCommitter) async throws(CacheError) -> R {
        await withCheckedContinuation { continuation in
            ticket.write.wake(continuation)
            if enqueue(ticket.write, onThread: false) { offerLead(committer) }
        }
        return try ticket.outcome()
    }

    /// Does a write of the scope `.holding(.everything)` on this thread: one that waits until nothing is held.
    package func runHoldingEverything<R>(
        _ ticket: WriteTicket<R>, _ committer: any WriteCommitter
    ) throws(CacheError) -> R {
        wait(for: ticket.write, committer)
        release(.everything, committer)
        committer.tellUntold()
        return try ticket.outcome()
    }

    private func wait(for write: QueuedWrite, _ committer: any WriteCommitter) {
        if enqueue(write, onThread: true) { lead(committer, asTask: false) }
        while !write.isDone {
            write.prepareToWait()
            if write.wait() { lead(committer, asTask: false) }
        }
    }

    /// Adds a write; true if its caller is to lead, or to offer the lead where it waits on no thread.
    private func enqueue(_ write: QueuedWrite, onThread: Bool) -> Bool {
        state.withLock { state in
            state.waiting.append(write)
            // The thread that it was offered to may never come: all of the system's may be waiting for the leader.
            if state.isLed && !(state.isOffered && onThread) { return false }
            state.isLed = true
            state.isOffered = !onThread
            return true
        }
    }

    /// Lets a thread of the system's lead, unless somebody else does by the time that it comes.
    private func offerLead(_ committer: any WriteCommitter) {
        DispatchQueue.global().async { [self] in
            let isOurs = state.withLock { state in
                defer { state.isOffered = false }
                return state.isOffered
            }
            guard isOurs else { return }
            lead(committer, asTask: true)
            committer.tellUntold()
        }
    }

    /// Commits a batch, wakes those it was for, and hands on the lead.
    ///
    /// - Parameter asTask: Whether nobody waits for this thread, so that it may go on for other tasks.
    private func lead(_ committer: any WriteCommitter, asTask: Bool) {
        var goesOn = true
        while goesOn {
            gather()
            let thread = CurrentThread.identity
            let batch = state.withLock { state in
                state.leader = thread
                let batch = state.takeBatch()
                state.lastBatch = batch.count
                return batch
            }
            let writes = batch.allSatisfy(\.isWriting) ? batch : batch.filter(\.isWriting)
            if !writes.isEmpty {
                Self.commit(writes, committer)
                state.withLock { $0.transactions += 1 }
            }
            for write in batch { write.finish() }
            if !writes.isEmpty { committer.batchIsOver() }
            goesOn = handOn(committer, asTask: asTask)
        }
    }

    /// Gives those who shared the last transaction a moment to come back: they were woken just now.
    ///
    /// Who writes alone never waits.
    private func gather() {
        var (count, last) = state.withLock { ($0.waiting.count, $0.lastBatch) }
        var idle = 0
        while count < last, idle < 3 {
            CurrentThread.yield()
            let now = state.withLock { $0.waiting.count }
            idle = now == count ? idle + 1 : 0
            count = now
        }
    }

    /// Finds the next leader.
    ///
    /// - Returns: True if this thread is to go on.
    private func handOn(_ committer: any WriteCommitter, asTask: Bool) -> Bool {
        var tried = 0
        while true {
            let waiting = state.withLock { state -> [QueuedWrite]? in
                state.leader = nil
                if state.waiting.isEmpty { state.isLed = false }
                if state.waiting.count > tried { return state.waiting }
                state.isOffered = !state.waiting.isEmpty
                return nil
            }
            guard let waiting else { break }
            // Rather one that waits on a thread than one that the system may not have.
            for write in asTask ? waiting.prefix(1) : waiting[...] {
                write.prepareToWait()
                if write.appointLeader() { return false }
            }
            if asTask { return true }
            tried = waiting.count
        }
        if tried > 0 { offerLead(committer) }
        return false
    }

    private static func commit(_ batch: [QueuedWrite], _ committer: any WriteCommitter) {
        let isShared = batch.count > 1
        do throws(CacheError) {
            var pages = 0
            for write in batch { pages = min(pages, Int.max / 2) + min(write.pages, Int.max / 2) }
            try committer.commit(adding: pages) { (connection, context) throws(SQLiteError) in
                for write in batch { try perform(write, isShared, &connection, context) }
            }
        } catch {
            if isShared, error.code == .storageFull {
                // One of them may be too much for the disk, and the others not.
                for write in batch { Self.commit([write], committer) }
            } else {
                for write in batch { write.fail(error) }
            }
            return
        }
        for write in batch { write.apply() }
    }

    private static func perform(
        _ write: QueuedWrite, _ isShared: Bool, _ connection: inout Connection, _ context: WriteContext
    ) throws(SQLiteError) {
        do throws(WriteFailure) {
            if isShared && write.isCompound {
                try connection.undoing { (connection) throws(WriteFailure) in
                    try write.perform(&connection, context)
                }
            } else {
                try write.perform(&connection, context)
            }
        } catch {
            switch error {
            case .refused(let error): write.fail(error)
            case .database(let error):
                // A value too large for a row, a trigger that refuses it: a fault of this write alone.
                guard isShared, !error.isCorruption, .tooBig ~= error.code || .constraint ~= error.code else {
                    throw error
                }
                write.fail(CacheError("cannot write", error))
            }
        }
    }

    // MARK: - Holding

    /// Waits until nobody writes what is named, and keeps others from it until ``release(_:_:)``.
    package func hold(_ hold: WriteHold, _ committer: any WriteCommitter) {
        let ticket = WriteTicket<Void>(.holding(hold), isWriting: false, perform: { (_, _) throws(WriteFailure) in })
        wait(for: ticket.write, committer)
    }

    /// Whether somebody holds everything.
    package var isHeldWhole: Bool { state.withLock { $0.holds.contains(.everything) } }

    /// Gives back what a write of the scope `.holding` took.
    package func release(_ hold: WriteHold, _ committer: any WriteCommitter) {
        let isLeaderless = state.withLock { state in
            state.holds.remove(hold)
            state.waiting = state.deferred + state.waiting
            state.deferred = []
            if state.waiting.isEmpty || (state.isLed && !state.isOffered) { return false }
            state.isLed = true
            state.isOffered = false
            return true
        }
        if isLeaderless, handOn(committer, asTask: false) {
            preconditionFailure("A thread without a batch cannot lead.")
        }
    }
}

extension WriteQueue.State {
    /// Takes what can be written now, in order, and defers what something is held against.
    fileprivate mutating func takeBatch() -> [QueuedWrite] {
        if holds.isEmpty, waiting.count <= WriteQueue.batchLimit, !waiting.contains(where: \.needsCare) {
            defer { waiting = [] }
            return waiting
        }
        var batch: [QueuedWrite] = []
        var taken = 0
        for write in waiting {
            if batch.count == WriteQueue.batchLimit || (write.isAlone && !batch.isEmpty) { break }
            taken += 1
            if isHeld(write.scope) {
                deferred.append(write)
            } else {
                if case .holding(let hold) = write.scope { holds.insert(hold) }
                batch.append(write)
                if write.isAlone { break }
            }
        }
        waiting.removeFirst(taken)
        return batch
    }

    private func isHeld(_ scope: WriteScope) -> Bool {
        if holds.contains(.everything) { return true }
        return switch scope {
        case .unheld: false
        case .key(let key): holds.contains(.key(key))
        case .cache(let cache): holds.contains { if case .key(let key) = $0 { key.cache == cache } else { false } }
        case .holding(.everything): !holds.isEmpty
        // One that wants more than a key would wait for ever if others took hold again and again.
        case .holding(let hold): holds.contains(hold) || deferred.contains { $0.isOvertaken(by: hold) }
        }
    }
}

extension QueuedWrite {
    fileprivate var needsCare: Bool { if case .holding = scope { true } else { isAlone } }

    /// Whether it waits for what others hold, and would go on waiting if this one were taken.
    fileprivate func isOvertaken(by hold: WriteHold) -> Bool {
        switch (scope, hold) {
        case (.holding(.everything), _): true
        case (.cache(let cache), .key(let key)): key.cache == cache
        default: false
        }
    }
}
