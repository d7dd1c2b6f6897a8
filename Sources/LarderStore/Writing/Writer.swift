internal import Dispatch
internal import LarderLocks
internal import LarderSQLite

/// The one writer of a store: requests that come while another one is committed share the next transaction.
///
/// The thread that holds the lock drains the queue for all that wait (flat combining). The request of a task runs on the
/// task's thread if the lock is free, or else on a serial queue. Lock order: the writer, then the queue.
final class Writer: Sendable {
    struct Queue {
        var database: Database
        /// In the order of their deadlines.
        var waiting: [Request] = []
        /// The reason for which requests are refused; nil while the store is open.
        var refusal: StoreError?
        /// A Boolean value that indicates whether the serial queue was asked to drain and has taken no batch since.
        var isDrainScheduled = false
        /// The number of requests of the last batch.
        var lastBatch = 0

        /// Returns whether the caller has to ask the serial queue.
        mutating func scheduleDrain() -> Bool {
            defer { isDrainScheduled = true }
            return !isDrainScheduled
        }
    }

    let queue: Mutex<Queue>
    let lock: OwnedLock<WriterState?>
    let report: @Sendable (StoreEvent) -> Void
    let tiers: AttachedTiers
    let readers: Readers?
    let serialQueue = DispatchQueue(label: "larder.writer")
    /// Held while victims are chosen among many rows, so that one call does it for all.
    let choosing = Mutex(())
    let background = Mutex(BackgroundEvictions())
    private static let serialKey = DispatchSpecificKey<Bool>()
    let ownConnections = DispatchGroup()
    /// The lock of a migration that runs, which a suspension releases.
    let migrationLock = Mutex<HeldLock?>(nil)
    let busyTimeout: Int64
    let accesses: AccessBook
    /// A Boolean value that indicates whether a commit waits for the disk, so that no task's thread may do it.
    private let syncsCommits: Bool

    init(_ state: sending WriterState, _ options: Store.Options) {
        queue = Mutex(Queue(database: state.database))
        (tiers, readers, accesses) = (state.tiers, state.readers, state.accesses)
        syncsCommits = state.database.file != nil && options.durability == .powerLoss
        lock = OwnedLock(state)
        serialQueue.setSpecific(key: Self.serialKey, value: true)
        (report, busyTimeout) = (options.report, options.busyTimeout)
    }

    var database: Database {
        get { queue.withLock { $0.database } }
        set {
            let old = queue.withLock { queue in
                defer { queue.database = newValue }
                return queue.database
            }
            _ = consume old
        }
    }

    var isOwned: Bool { lock.isOwned }
    /// A Boolean value that indicates whether this thread runs a block of the serial queue of some store.
    var isOnSerialQueue: Bool { DispatchQueue.getSpecific(key: Self.serialKey) == true }
    var waitingCount: Int { queue.withLock { $0.waiting.count { !$0.isCancelled } } }
    var isClosed: Bool { refusal?.code == .closed }
    var isSuspended: Bool { refusal?.code == .suspended }
    var refusal: StoreError? { queue.withLock { $0.refusal } }

    // MARK: Requests

    /// Runs a request and returns when it is committed.
    @discardableResult
    func run(_ work: Request.Work, apply: CacheRows.Apply? = nil) throws(StoreError) -> Outcome {
        let request = Request(work, apply: apply)
        if try runAlone(request, waits: true), let result = request.result { return try result.get() }
        if let refusal = append(request) { throw refusal }
        try drain { request.isDone }
        guard let result = request.result else { throw .closed }
        return try result.get()
    }

    /// Runs a request of a task.
    ///
    /// A task that is cancelled while its request is in the queue throws, and nothing has changed.
    @discardableResult
    func run(_ work: Request.Work, apply: CacheRows.Apply? = nil) async throws -> Outcome {
        try Task.checkCancellation()
        let request = Request(work, apply: apply)
        if !syncsCommits, !expectsOthers, try runAlone(request, waits: false),
            let result = request.result
        {
            return try result.get()
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                request.continuation = continuation
                guard let refusal = append(request) else { return }
                request.fail(refusal)
                request.resume()
            }
        } onCancel: {
            // It stays in the queue, which leaves it out: a search would take as long as the queue is.
            let continuation = queue.withLock { _ -> CheckedContinuation<Outcome, any Error>? in
                defer { request.isCancelled = true }
                if !request.isWaiting || request.isCancelled { return nil }
                defer { request.continuation = nil }
                return request.continuation
            }
            continuation?.resume(throwing: CancellationError())
        }
    }

    /// Runs a request on this thread if the lock is free and no other request waits.
    ///
    /// - Parameter waits: A Boolean value that indicates whether another process may be waited for. If not, returns false
    ///   while one writes.
    private func runAlone(_ request: Request, waits: Bool) throws(StoreError) -> Bool {
        var aftermath = Aftermath()
        let isDone = try lock.tryLock { state in
            guard let state, !state.isLost, waits || !(state.isCopyOverdue || state.hasLimits || state.room.isShort),
                queue.withLock({ $0.waiting.isEmpty && $0.refusal == nil })
            else {
                return false
            }
            if waits { state.copyOverdueLog() }
            request.deadline = Deadline(in: waits ? busyTimeout : 0)
            do {
                try state.begin(until: request.deadline)
            } catch {
                if waits { request.fail(StoreError(any: error)) }
                return waits
            }
            let isDone = executeAlone(request, state, mayWait: waits)
            aftermath = state.takeAftermath()
            return isDone
        }
        finish(aftermath, waits: waits)
        return isDone ?? false
    }

    /// Runs `body` with the lock, and outside it does what follows.
    func locked<R>(_ body: (inout WriterState?) throws(StoreError) -> R) throws(StoreError) -> R {
        var aftermath = Aftermath()
        let result = try lock.withLock { state throws(StoreError) in
            let result = Result { () throws(StoreError) in try body(&state) }
            aftermath = state?.takeAftermath() ?? Aftermath()
            return result
        }
        finish(aftermath, waits: true)
        return try result.get()
    }

    /// Runs a chore in the background, and calls `apply` when it is committed.
    ///
    /// - Returns: False if the store is suspended or closed.
    @discardableResult
    func enqueue(_ chore: @escaping @Sendable (WriterState) throws -> Void, apply: CacheRows.Apply? = nil) -> Bool {
        let block: @Sendable (WriterState) throws -> Outcome = { state in
            try chore(state)
            return Outcome()
        }
        return append(Request(.block(block), apply: apply), isAwaited: false) == nil
    }

    /// Puts a request into the queue, or returns why none is taken.
    ///
    /// For a request that no thread waits for, the serial queue is asked to drain. A task that was cancelled goes on at once.
    private func append(_ request: Request, isAwaited: Bool = true) -> StoreError? {
        let (refusal, isCancelled, asks) = queue.withLock { queue in
            request.deadline = Deadline(in: busyTimeout)
            let isTaken = queue.refusal == nil && !request.isCancelled
            if isTaken {
                queue.waiting.append(request)
                request.isWaiting = true
            }
            let asks = isTaken && (!isAwaited || request.continuation != nil) && queue.scheduleDrain()
            return (queue.refusal, request.isCancelled, asks)
        }
        if asks { drainOnSerialQueue() }
        if isCancelled && refusal == nil { request.resume() }
        return refusal
    }

    /// A Boolean value that indicates whether requests come together, so that they share transactions.
    private var expectsOthers: Bool { queue.withLock { $0.lastBatch > 1 } }

    /// Waits a moment for as many requests as the last batch had, so that the tasks that it has let go share the next one.
    private func gather() {
        Deadline.giveWay(microseconds: 50) { queue.withLock { $0.waiting.count < min($0.lastBatch, 64) } }
    }

    func drainOnSerialQueue() {
        serialQueue.async { [self] in
            gather()
            // No body runs on this thread now, so the lock is never refused.
            do { try drain { true } } catch {}
        }
    }
}
