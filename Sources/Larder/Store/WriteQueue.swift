internal import Dispatch
internal import LarderSQLite
internal import Synchronization

/// Orders the writes: a caller that finds no leader leads, and commits every request that waits in one transaction.
///
/// A single thread pays for one commit, a hundred tasks share one. The leader applies a batch to memory, in its order,
/// before the next one begins, so that memory and disk never disagree. Then it wakes the callers and hands the lead to one
/// of those that wait. Tasks, which wait on no thread, are led by a thread of the system's.
package final class WriteQueue: Sendable {
    fileprivate struct State {
        var waiting: [WriteRequest] = []
        /// Requests whose scope is held, in their order.
        var deferred: [WriteRequest] = []
        var isLed = false
        /// The thread that leads.
        var leader: UInt?
        /// Whether the lead waits for a thread of the system's that has not begun.
        var isOffered = false
        var holds: Set<WriteHold> = []
        var transactions = 0
    }

    private let state = Mutex(State())

    /// How many requests the last batch had.
    private let lastBatch = Atomic(0)

    /// How many requests share a transaction at most.
    package static let batchLimit = 512

    /// A batch that is being committed, and the next one.
    package let room = WriteRoom(2 * batchLimit)

    package init() {}

    /// How many transactions were committed.
    package var transactions: Int { state.withLock { $0.transactions } }

    /// How many requests wait for their turn, or for a hold to be released.
    package var waitingCount: Int { state.withLock { $0.waiting.count + $0.deferred.count } }

    /// Whether this thread leads: no write goes on before it does, so it must not run code of the user's.
    package var isLedHere: Bool { state.withLock { $0.leader == CurrentThread.identity } }

    /// Makes a write on this thread, or waits for the thread that makes it.
    package func run(_ request: WriteRequest, _ store: Store) throws(CacheError) {
        wait(for: request, store)
        // A request that writes holds what it names only until it is made.
        if case .holding(let hold) = request.scope { release(hold, store) }
        store.tellUntold()
        if let error = request.error { throw error }
    }

    /// Makes a write on another thread.
    package func run(_ request: WriteRequest, _ store: Store) async throws(CacheError) {
        await withCheckedContinuation { continuation in
            request.waiter = .task(continuation)
            if enqueue(request, onThread: false) { offerLead(store) }
        }
        // Under the lock, which the leader took when it was done: what that left in the request is seen from here on.
        if let error = state.withLock({ _ in request.error }) { throw error }
    }

    private func wait(for request: WriteRequest, _ store: Store) {
        if enqueue(request, onThread: true), lead(store, for: request) { return }
        while true {
            let semaphore = DispatchSemaphore(value: 0)
            let isOver = state.withLock { _ in
                request.waiter = .thread(semaphore)
                return request.isDone || request.isAppointed
            }
            if !isOver { semaphore.wait() }
            let isAppointed = state.withLock { _ in
                defer { request.isAppointed = false }
                return request.isAppointed
            }
            if !isAppointed || lead(store, for: request) { return }
        }
    }

    /// Adds a request; true if its caller is to lead, or to offer the lead if it is a task.
    private func enqueue(_ request: WriteRequest, onThread: Bool) -> Bool {
        state.withLock { state in
            state.waiting.append(request)
            // The thread that it was offered to may never come: all of the system's may be waiting for the leader.
            if state.isLed && !(state.isOffered && onThread) { return false }
            state.isLed = true
            state.isOffered = !onThread
            return true
        }
    }

    /// Lets a thread of the system's lead, unless another one does by the time that it comes.
    private func offerLead(_ store: Store) {
        DispatchQueue.global().async { [self] in
            let isOurs = state.withLock { state in
                defer { state.isOffered = false }
                return state.isOffered
            }
            guard isOurs else { return }
            _ = lead(store, for: nil)
            store.tellUntold()
        }
    }

    /// Commits batches until the lead is handed on.
    ///
    /// - Parameter own: The request that this thread waits for; nil if it may go on for tasks.
    /// - Returns: Whether that is done.
    private func lead(_ store: Store, for own: WriteRequest?) -> Bool {
        while true {
            yieldForStragglers()
            let thread = CurrentThread.identity
            var batch = state.withLock { state in
                state.leader = thread
                return state.takeBatch()
            }
            lastBatch.store(batch.count, ordering: .relaxed)
            let writes = batch.allSatisfy(\.operation.isWriting) ? batch : batch.filter(\.operation.isWriting)
            let isWriting = !writes.isEmpty
            if isWriting { Self.commit(consume writes, store) }
            finish(&batch, isWriting)
            if isWriting { store.keepLogShort() }
            switch handOn(asTask: own == nil) {
            case .handed(let semaphore): semaphore?.signal()
            case .onlyTasks where own == nil: continue
            case .onlyTasks: offerLead(store)
            }
            return own == nil || state.withLock { _ in own?.isDone == true }
        }
    }

    /// Yields so that the callers of the last batch, which were woken just now, can share this commit.
    ///
    /// A caller that writes alone never waits.
    private func yieldForStragglers() {
        let last = lastBatch.load(ordering: .relaxed)
        guard last > 1 else { return }
        var (count, idle) = (state.withLock { $0.waiting.count }, 0)
        while count < last, idle < 3 {
            CurrentThread.yield()
            let now = state.withLock { $0.waiting.count }
            idle = now == count ? idle + 1 : 0
            count = now
        }
    }

    /// Wakes the callers of a batch.
    private func finish(_ batch: inout [WriteRequest], _ isTransaction: Bool) {
        let waiters = state.withLock { state in
            if isTransaction { state.transactions += 1 }
            for request in batch { request.isDone = true }
            let waiters = batch.map(\.waiter)
            // The callers hold their requests until they see that, so none is released here, with values of the user's.
            batch = []
            return waiters
        }
        for waiter in waiters {
            switch waiter {
            case .thread(let semaphore): semaphore?.signal()
            case .task(let continuation): continuation.resume()
            }
        }
    }

    private enum Succession {
        /// A thread that waits leads; or no request waits, then there is none to signal.
        case handed(DispatchSemaphore?)
        case onlyTasks
    }

    /// Finds the next leader.
    ///
    /// - Parameter asTask: Whether this thread leads on if only tasks wait.
    private func handOn(asTask: Bool) -> Succession {
        state.withLock { state in
            state.leader = nil
            if state.waiting.isEmpty {
                state.isLed = false
                return .handed(nil)
            }
            for request in state.waiting {
                guard case .thread(let semaphore) = request.waiter else { continue }
                request.isAppointed = true
                return .handed(semaphore)
            }
            state.isOffered = !asTask
            return .onlyTasks
        }
    }

    private static func commit(_ batch: [WriteRequest], _ store: Store) {
        let isShared = batch.count > 1
        do throws(CacheError) {
            var pages = 0
            for request in batch { pages = min(pages, Int.max / 2) + min(request.operation.pages, Int.max / 2) }
            try store.commit(adding: pages) { (connection, context) throws(SQLiteError) in
                for request in batch { try perform(request, isShared, &connection, context) }
            }
        } catch {
            if isShared, error.code == .storageFull {
                // One of them may be too much for the disk, and the others not.
                for request in batch { Self.commit([request], store) }
                return
            }
            for request in batch { request.error = error }
        }
        for request in batch { request.apply() }
    }

    private static func perform(
        _ request: WriteRequest, _ isShared: Bool, _ connection: inout Connection, _ context: WriteContext
    ) throws(SQLiteError) {
        do throws(WriteFailure) {
            if isShared && request.operation.isCompound {
                try connection.undoing { (connection) throws(WriteFailure) in
                    try request.perform(&connection, context)
                }
            } else {
                try request.perform(&connection, context)
            }
        } catch {
            switch error {
            case .refused(let error): request.error = error
            case .database(let error):
                // A value too large for a row, a trigger that refuses it: a fault of this request alone.
                guard isShared, !error.isCorruption, .tooBig ~= error.code || .constraint ~= error.code else {
                    throw error
                }
                request.error = CacheError("cannot write", error)
            }
        }
    }

    // MARK: - Holding

    /// Waits until no request writes what is named, and keeps others from it until ``release(_:_:)``.
    package func hold(_ hold: WriteHold, _ store: Store) {
        wait(for: WriteRequest(.hold, scope: .holding(hold)), store)
    }

    /// Whether everything is held.
    package var isHeldWhole: Bool { state.withLock { $0.holds.contains(.everything) } }

    /// Releases what a request of the scope `.holding` took.
    package func release(_ hold: WriteHold, _ store: Store) {
        let isLeaderless = state.withLock { state in
            state.holds.remove(hold)
            state.waiting = state.deferred + state.waiting
            state.deferred = []
            if state.waiting.isEmpty || (state.isLed && !state.isOffered) { return false }
            state.isLed = true
            state.isOffered = false
            return true
        }
        guard isLeaderless else { return }
        switch handOn(asTask: false) {
        case .handed(let semaphore): semaphore?.signal()
        case .onlyTasks: offerLead(store)
        }
    }
}

extension WriteQueue.State {
    /// Takes what can be written now, in order, and defers what something is held against.
    fileprivate mutating func takeBatch() -> [WriteRequest] {
        if holds.isEmpty, waiting.count <= WriteQueue.batchLimit, !waiting.contains(where: \.needsCare) {
            defer { waiting = [] }
            return waiting
        }
        var batch: [WriteRequest] = []
        var taken = 0
        for request in waiting {
            if batch.count == WriteQueue.batchLimit || (request.operation.isAlone && !batch.isEmpty) { break }
            taken += 1
            if isHeld(request.scope) {
                deferred.append(request)
            } else {
                if case .holding(let hold) = request.scope { holds.insert(hold) }
                batch.append(request)
                if request.operation.isAlone { break }
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

extension WriteRequest {
    fileprivate var needsCare: Bool { if case .holding = scope { true } else { operation.isAlone } }

    /// Whether it waits for what others hold, and would go on waiting if this one were taken.
    fileprivate func isOvertaken(by hold: WriteHold) -> Bool {
        switch (scope, hold) {
        case (.holding(.everything), _): true
        case (.cache(let cache), .key(let key)): key.cache == cache
        default: false
        }
    }
}
