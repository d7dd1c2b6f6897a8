internal import Dispatch
package import LarderSQLite
internal import Synchronization

/// Why a write did not happen.
package enum WriteFailure: Error {
    /// SQLite failed; the transaction may be lost with it.
    case database(SQLiteError)
    /// It was refused before it touched anything; the others of its batch go on.
    case refused(CacheError)
}

/// What a write does.
///
/// An object and not two closures: these would be wrapped anew whenever they are taken from where they are kept.
package protocol WriteWork: AnyObject, Sendable {
    /// Does it, inside a transaction; may be called again, in another one.
    func perform(_ connection: inout Connection, _ context: WriteContext) throws(WriteFailure)

    /// Makes it known in memory: its transaction is committed, and no later one has begun.
    ///
    /// What was displaced in memory is given back, and released when nothing is held any more.
    func apply() -> (any Sendable)?
}

/// A write that waits for its turn, as the queue sees it: without its result, whose type generic code would have to ask
/// the runtime for at every step.
package final class QueuedWrite: Sendable {
    private enum Waiter {
        case none
        case thread(DispatchSemaphore)
        case task(CheckedContinuation<Void, Never>)
    }

    private struct State {
        /// Let go of by the caller, since their release may release values of the user's.
        var work: (any WriteWork)?
        var isPerformed = false
        var error: CacheError?
        var displaced: (any Sendable)?
        var waiter = Waiter.none
        var isDone = false
        var isAppointed = false
    }

    package let scope: WriteScope

    /// Whether it takes several statements, so that it needs a savepoint to fail alone.
    let isCompound: Bool

    /// Whether it needs a transaction of its own: what it changes is what others of a batch would go by.
    let isAlone: Bool

    /// Whether it writes at all; one that only takes hold of something does not.
    let isWriting: Bool

    /// How many pages it adds at most; 0 where it adds nothing, and may use what is kept of the volume for removals.
    let pages: Int

    private let state: Mutex<State>

    init(
        _ scope: WriteScope, isCompound: Bool = false, isAlone: Bool = false, isWriting: Bool = true,
        adding pages: Int = 0, _ work: any WriteWork
    ) {
        self.pages = pages
        self.scope = scope
        self.isCompound = isCompound
        self.isAlone = isAlone
        self.isWriting = isWriting
        state = Mutex(State(work: work))
    }

    // MARK: - What the leader calls

    /// Does it, inside a transaction.
    package func perform(_ connection: inout Connection, _ context: WriteContext) throws(WriteFailure) {
        let work = state.withLock { state in
            (state.error, state.isPerformed) = (nil, false)
            return state.work
        }
        guard let work else { return }
        try work.perform(&connection, context)
        state.withLock { $0.isPerformed = true }
    }

    /// Makes it known in memory.
    package func apply() {
        let work = state.withLock { $0.isPerformed && $0.error == nil ? $0.work : nil }
        guard let displaced = work?.apply() else { return }
        state.withLock { $0.displaced = displaced }
    }

    /// Notes why it did not happen.
    package func fail(_ error: CacheError) { state.withLock { $0.error = error } }

    /// Whether it was done, and nothing has failed since.
    package var isGood: Bool { state.withLock { $0.isPerformed && $0.error == nil } }

    /// Tells its caller that it is over.
    func finish() {
        let waiter = state.withLock { state in
            state.isDone = true
            return state.waiter
        }
        switch waiter {
        case .none: break
        case .thread(let semaphore): semaphore.signal()
        case .task(let continuation): continuation.resume()
        }
    }

    /// Tells its caller to lead the next batch; false if that is a task, which does not wait on a thread.
    func appointLeader() -> Bool {
        let semaphore = state.withLock { state -> DispatchSemaphore? in
            guard case .thread(let semaphore) = state.waiter else { return nil }
            state.isAppointed = true
            return semaphore
        }
        guard let semaphore else { return false }
        semaphore.signal()
        return true
    }

    // MARK: - What its caller calls

    /// Makes ready for a wait on a thread; harmless if it is, and for a task.
    func prepareToWait() {
        let semaphore = DispatchSemaphore(value: 0)
        state.withLock { state in
            if case .none = state.waiter { state.waiter = .thread(semaphore) }
        }
    }

    /// Lets a task be resumed when it is over.
    func wake(_ continuation: CheckedContinuation<Void, Never>) {
        state.withLock { $0.waiter = .task(continuation) }
    }

    /// Whether it is over.
    var isDone: Bool { state.withLock { $0.isDone } }

    /// Waits, on this thread, until it is over or appointed to lead.
    ///
    /// - Returns: True if it is to lead.
    func wait() -> Bool {
        let semaphore = state.withLock { state -> DispatchSemaphore? in
            guard !state.isDone, case .thread(let semaphore) = state.waiter else { return nil }
            return semaphore
        }
        semaphore?.wait()
        return state.withLock { state in
            defer { state.isAppointed = false }
            return state.isAppointed
        }
    }

    /// Throws if it failed; releases what it displaced.
    func end() throws(CacheError) {
        let (error, displaced, work) = state.withLock { state in
            defer { (state.displaced, state.work) = (nil, nil) }
            return (state.error, state.displaced, state.work)
        }
        _ = consume displaced
        _ = consume work
        if let error { throw error }
    }
}
