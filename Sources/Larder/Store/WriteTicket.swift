internal import Dispatch
package import LarderSQLite
internal import Synchronization

/// Why a write did not happen.
package enum WriteFailure: Error {
    /// SQLite failed; the transaction may be lost with it.
    case database(SQLiteError)
    /// It was refused before it touched anything; the others of its batch go on.
    case refused(CacheError)

    /// Runs `body`, whose failures are SQLite's.
    package static func passing<R>(_ body: () throws(SQLiteError) -> R) throws(WriteFailure) -> R {
        do {
            return try body()
        } catch {
            throw .database(error)
        }
    }
}

/// What a write touches: it waits for an `update` or a `transaction` that holds it.
package enum WriteScope: Sendable {
    /// Nothing that can be held: sub-caches being opened, rows being reclaimed.
    case unheld
    case key(HeldKey)
    case cache(ObjectIdentifier)
    /// Takes hold of what it names, until ``WriteQueue/release(_:)``.
    case holding(WriteHold)
}

/// A key of one sub-cache.
package struct HeldKey: Hashable, Sendable {
    package let cache: ObjectIdentifier
    package let key: StoredKey

    package init(_ cache: ObjectIdentifier, _ key: StoredKey) {
        self.cache = cache
        self.key = key
    }
}

/// What can be held against the writes of others.
package enum WriteHold: Hashable, Sendable {
    case key(HeldKey)
    case everything
}

/// A write that waits for its turn, as the queue sees it.
package protocol QueuedWrite: AnyObject, Sendable {
    var scope: WriteScope { get }
    /// Whether it takes several statements, so that it needs a savepoint to fail alone.
    var isCompound: Bool { get }
    /// Whether it needs a transaction of its own: what it changes is what others of a batch would go by.
    var isAlone: Bool { get }
    /// Whether it writes at all; one that only takes hold of something does not.
    var isWriting: Bool { get }
    /// Does it, inside a transaction; may be called again, in another one.
    func perform(_ connection: inout Connection, _ context: WriteContext) throws(WriteFailure)
    /// Makes it known in memory: its transaction is committed, and no later one has begun.
    func apply()
    /// Notes why it did not happen.
    func fail(_ error: CacheError)
    /// Whether `fail` was called since the last `perform` began.
    var hasFailed: Bool { get }
    /// Tells its caller that it is over.
    func finish()
    /// Tells its caller to lead the next batch; false if that is a task, which does not wait on a thread.
    func appointLeader() -> Bool
    /// Makes ready for a wait on a thread; harmless if it is, and for a task.
    func prepareToWait()
}

/// A write with its outcome.
package final class WriteTicket<Result: Sendable>: QueuedWrite {
    package typealias Perform = @Sendable (inout Connection, WriteContext) throws(WriteFailure) -> Result
    /// What was displaced in memory is given back, and released when nothing is held any more.
    package typealias Apply = @Sendable (Result) -> (any Sendable)?

    private enum Waiter {
        case none
        case thread(DispatchSemaphore)
        case task(CheckedContinuation<Void, Never>)
    }

    private struct State {
        /// Let go of by the caller, since their release may release values of the user's.
        var work: (perform: Perform, apply: Apply)?
        var result: Result?
        var error: CacheError?
        var displaced: (any Sendable)?
        var waiter = Waiter.none
        var isDone = false
        var isAppointed = false
    }

    package let scope: WriteScope
    package let isCompound: Bool
    package let isAlone: Bool
    package let isWriting: Bool
    private let state: Mutex<State>

    package init(
        _ scope: WriteScope, isCompound: Bool = false, isAlone: Bool = false, isWriting: Bool = true,
        perform: @escaping Perform,
        apply: @escaping Apply = { _ in nil }
    ) {
        self.scope = scope
        self.isCompound = isCompound
        self.isAlone = isAlone
        self.isWriting = isWriting
        state = Mutex(State(work: (perform, apply)))
    }

    package func perform(_ connection: inout Connection, _ context: WriteContext) throws(WriteFailure) {
        let work = state.withLock { state in
            state.error = nil
            return state.work
        }
        guard let work else { return }
        let result = try work.perform(&connection, context)
        state.withLock { $0.result = result }
    }

    package func apply() {
        guard let work = state.withLock({ $0.work }), let result, let displaced = work.apply(result) else { return }
        state.withLock { $0.displaced = displaced }
    }

    package func fail(_ error: CacheError) { state.withLock { $0.error = error } }

    /// What was committed; nil if nothing was.
    package var result: Result? { state.withLock { $0.error == nil ? $0.result : nil } }

    package var hasFailed: Bool { state.withLock { $0.error != nil } }

    package func finish() {
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

    package func appointLeader() -> Bool {
        let semaphore = state.withLock { state -> DispatchSemaphore? in
            guard case .thread(let semaphore) = state.waiter else { return nil }
            state.isAppointed = true
            return semaphore
        }
        guard let semaphore else { return false }
        semaphore.signal()
        return true
    }

    package func prepareToWait() {
        let semaphore = DispatchSemaphore(value: 0)
        state.withLock { state in
            if case .none = state.waiter { state.waiter = .thread(semaphore) }
        }
    }

    /// Lets a task be resumed when it is over.
    package func wake(_ continuation: CheckedContinuation<Void, Never>) {
        state.withLock { $0.waiter = .task(continuation) }
    }

    /// Whether it is over.
    package var isDone: Bool { state.withLock { $0.isDone } }

    /// Waits, on this thread, until it is over or appointed to lead.
    ///
    /// - Returns: True if it is to lead.
    package func wait() -> Bool {
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

    /// How it ended; releases what it displaced.
    package func outcome() throws(CacheError) -> Result {
        let (result, error, displaced, work) = state.withLock { state in
            defer { (state.displaced, state.work) = (nil, nil) }
            return (state.result, state.error, state.displaced, state.work)
        }
        _ = consume displaced
        _ = consume work
        if let error { throw error }
        guard let result else { preconditionFailure("A write was acknowledged that was never done.") }
        return result
    }
}
