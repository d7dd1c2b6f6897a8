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
        readers?.follow(self)
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

    /// Ends the read transaction that is kept, and returns false if the writer is busy.
    func stopReading() -> Bool {
        // It throws if a body of this thread runs.
        do { return try lock.tryLock { $0?.stopReading() } != nil } catch { return false }
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
    func run(_ work: Request.Work) throws(StoreError) -> Outcome {
        let request = Request(work)
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
    func run(_ work: Request.Work) async throws -> Outcome {
        try Task.checkCancellation()
        let request = Request(work)
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
        var outbox = Outbox()
        let isDone = try lock.tryLock { state in
            guard let state, !state.isLost, waits || state.isQuick,
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
            outbox = state.takeOutbox()
            return isDone
        }
        finish(outbox, waits: waits)
        return isDone ?? false
    }

    /// Runs `body` with the lock, and outside it does what follows.
    func locked<R>(_ body: (inout WriterState?) throws(StoreError) -> R) throws(StoreError) -> R {
        var outbox = Outbox()
        let result = try lock.withLock { state throws(StoreError) in
            // What it reads is the newest state.
            state?.connection.stopReading()
            let result = Result { () throws(StoreError) in try body(&state) }
            outbox = state?.takeOutbox() ?? Outbox()
            return result
        }
        finish(outbox, waits: true)
        return try result.get()
    }

    /// Runs a chore in the background, and calls `whenDone` when it is committed.
    ///
    /// - Returns: False if the store is suspended or closed.
    @discardableResult
    func enqueue(
        _ chore: @escaping @Sendable (WriterState) throws -> Void, whenDone: (@Sendable () -> Void)? = nil
    ) -> Bool {
        let body: @Sendable (WriterState) throws -> Outcome = { state in
            try chore(state)
            return Outcome()
        }
        return append(Request(.chore(body, whenDone: whenDone)), isAwaited: false) == nil
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

/// Bodies, chores and reads that run with the writer's lock on the caller's thread.
extension Writer {
    /// Runs `body` in a transaction of its own, on this thread.
    func exclusive<R>(_ body: (WriterState) throws -> R) throws -> R {
        try lock.refuseOwner()
        if let refusal { throw refusal }
        let deadline = Deadline(in: busyTimeout)
        return try locked { state in
            Result {
                if let refusal { throw refusal }
                guard let state else { throw StoreError.closed }
                try renew(state)
                state.copyOverdueLog()
                defer { scheduleCopy(state) }
                let result = try state.transaction(until: deadline, body)
                state.noteShares()
                return result
            }
        }.get()
    }

    /// Runs a body of a task on the serial queue, unless the task is cancelled before it begins.
    func exclusive<R: Sendable>(_ body: @escaping @Sendable (WriterState) throws -> R) async throws -> R {
        try Task.checkCancellation()
        let isCancelled = Atomic(false)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                serialQueue.async { [self] in
                    let result = Result {
                        try exclusive { state in
                            if isCancelled.load(ordering: .relaxed) { throw CancellationError() }
                            return try body(state)
                        }
                    }
                    continuation.resume(with: result)
                }
            }
        } onCancel: {
            isCancelled.store(true, ordering: .relaxed)
        }
    }

    func runBatch<R>(_ body: (WriterState) throws -> R) throws(StoreError) -> R {
        try StoreError.translating { try exclusive(body) }
    }

    func attach(_ upkeep: Upkeep, _ options: Store.Options) {
        lock.wait { state in
            state?.upkeep = upkeep
            state?.upkeepInterval = options.upkeepInterval
            if options.runsUpkeep { state?.accesses.noteUpkeep() }
        }
    }

    /// Reads over the writer's connection, and waits for it.
    func read<R>(_ body: (WriterState) throws -> R) throws(StoreError) -> R {
        try locked { state throws(StoreError) in
            if let state { try renew(state) }
            return try Self.reading(state, body)
        }
    }

    /// Reads over the writer's connection, or returns nil if it is in use, or its file has to be opened again.
    func tryRead<R>(_ body: (WriterState) throws -> R) throws(StoreError) -> R? {
        if lock.isOwned { return nil }
        return try lock.tryLock { state throws(StoreError) in
            if let state, state.isLost || !state.connection.isInAutocommit { return nil }
            return try Self.reading(state, body)
        } ?? nil
    }

    static func reading<R>(_ state: WriterState?, _ body: (WriterState) throws -> R) throws(StoreError) -> R {
        guard let state else { throw .closed }
        if state.loss == .suspended { throw .suspended }
        do { return try body(state) } catch { throw state.fail(error) }
    }
}

/// Requests that wait are run in batches, one transaction each.
extension Writer {
    private static let batchLimit = 512

    /// Runs batches of the waiting requests until a condition holds.
    func drain(until isDone: () -> Bool) throws(StoreError) {
        var (outbox, finished) = (Outbox(), [Request]())
        try lock.withLock { state in
            repeat { finished += drain(state) } while !isDone()
            outbox = state?.takeOutbox() ?? outbox
        }
        finish(outbox, finished, waits: true)
    }

    /// Runs one batch of the waiting requests, and returns it.
    ///
    /// If no transaction can begin, those at their deadlines fail, and the others are tried again.
    func drain(_ state: WriterState?) -> [Request] {
        state?.copyOverdueLog()
        guard let deadline = queue.withLock({ $0.waiting.first?.deadline }) else {
            return take { _ in 0 }.withdrawn
        }
        do throws(StoreError) {
            guard let state else { throw .closed }
            try renew(state)
            do { try state.begin(until: deadline) } catch { throw StoreError(error) }
            let (batch, withdrawn) = take { min($0.count, Self.batchLimit) }
            execute(batch, state)
            return batch + withdrawn
        } catch {
            let (failed, withdrawn) = take { waiting in
                let due = waiting.prefix { $0.deadline <= deadline }.count
                return state == nil ? waiting.count : error.code == .busy ? due : max(1, due)
            }
            for request in failed { request.fail(error) }
            return failed + withdrawn
        }
    }

    /// Runs requests in the open transaction, and each alone if one of them fails.
    private func execute(_ batch: [Request], _ state: WriterState) {
        if batch.count == 1 {
            executeAlone(batch[0], state)
            return
        }
        do {
            try attempt(batch, state)
        } catch {
            let failure = state.fail(error)
            // After a move the commit may have been done, in the moved file.
            let isMoved = state.isLost
            var refusedBytes = Int.max
            for request in batch {
                if isMoved { request.fail(failure); continue }
                // Once one has found no room, though room was made, others that add as much find none.
                if request.addedBytes ?? -1 >= refusedBytes { request.fail(.full); continue }
                do {
                    try state.begin(until: request.deadline)
                    executeAlone(request, state)
                } catch {
                    request.fail(StoreError(error))
                }
                if request.isFull, let bytes = request.addedBytes { refusedBytes = min(refusedBytes, bytes) }
            }
            return
        }
        state.noteShares()
        scheduleCopy(state)
    }

    /// Runs a request in the open transaction.
    ///
    /// - Parameter mayWait: Whether this thread may make room on a full disk, and hold limits.
    /// - Returns: False if it may not and there is no room, so that the request is still to be run.
    @discardableResult
    func executeAlone(_ request: Request, _ state: WriterState, mayWait: Bool = true) -> Bool {
        do {
            try attempt(CollectionOfOne(request), state)
        } catch {
            let failure = state.fail(error)
            if state.isLost || failure.code != .storageFull {
                request.fail(failure)
            } else if mayWait {
                retryWithMoreRoom(request, failure, state)
            }
            return request.isDone
        }
        state.noteShares()
        scheduleCopy(state)
        return true
    }

    private func attempt(_ batch: some Collection<Request>, _ state: WriterState) throws {
        for request in batch { try request.perform(state) }
        try state.removeForAdditions()
        try state.requireRoom()
        try state.commit(batch, keepsReading: true)
        state.askForUpkeep()
    }

    /// Runs a request again on a full disk, after room was made.
    private func retryWithMoreRoom(_ request: Request, _ failure: StoreError, _ state: WriterState) {
        do {
            try state.makeRoom(after: failure, from: request.evictedCache)
            try state.begin(until: request.deadline)
            try attempt(CollectionOfOne(request), state)
        } catch {
            request.fail(state.fail(error))
        }
    }

    /// Asks the serial queue to copy the log if it is long.
    func scheduleCopy(_ state: WriterState) {
        guard state.schedulesCopy() else { return }
        serialQueue.async { [self] in
            do { try read { $0.copyLog() } } catch {}
        }
    }

    /// Takes requests out of the queue, and asks the serial queue to run what is left.
    ///
    /// - Returns: Those that are to be run, and those whose tasks were cancelled and have gone on, to be released outside locks.
    private func take(_ count: ([Request]) -> Int) -> (taken: [Request], withdrawn: [Request]) {
        let (taken, withdrawn, asks) = queue.withLock { queue in
            let first = queue.waiting.prefix(count(queue.waiting))
            for request in first { request.isWaiting = false }
            let (taken, withdrawn) = (first.filter { !$0.isCancelled }, first.filter(\.isCancelled))
            queue.waiting.removeFirst(first.count)
            queue.isDrainScheduled = false
            queue.lastBatch = taken.count
            return (taken, withdrawn, !queue.waiting.isEmpty && queue.scheduleDrain())
        }
        if asks { drainOnSerialQueue() }
        return (taken, withdrawn)
    }
}

/// The end of a store, and its suspension: the connections are closed, and requests are refused.
extension Writer {
    /// Refuses new requests, runs a batch of those that wait, and closes the connections.
    func close(at now: Int64) throws(StoreError) {
        try lock.refuseOwner()
        queue.withLock { $0.refusal = .closed }
        var outbox = Outbox()
        let finished = try lock.withLock { state in
            let drained = drain(state)
            state?.close(at: now)
            outbox = state?.takeOutbox() ?? outbox
            state = nil
            return drained + drain(nil)
        }
        finish(outbox, finished, waits: true)
    }

    /// Throws `.suspended` while the store is suspended.
    func requireResumed() throws(StoreError) {
        if let refusal, refusal.code == .suspended { throw refusal }
    }

    /// Refuses new requests, runs those that wait, and closes the connections until ``resume()``.
    func suspend(at now: Int64) throws(StoreError) {
        queue.withLock { if $0.refusal == nil { $0.refusal = .suspended } }
        ownConnections.wait()
        // A closure of a migration may run, which then ends.
        migrationLock.withLock { $0 }?.release()
        var (outbox, finished) = (Outbox(), [Request]())
        let result = try lock.withLock { state in
            while waitingCount > 0 { finished += drain(state) }
            let result = Result { () throws(StoreError) in try state?.suspend(at: now) }
            outbox = state?.takeOutbox() ?? outbox
            return result
        }
        finish(outbox, finished, waits: true)
        try result.get()
    }

    /// Takes requests again, of which the next one opens the file, and returns whether the store was suspended.
    func resume() -> Bool {
        if !isSuspended { return false }
        // Memory has not seen all commits of other stores.
        if database.file != nil { database.watch.end() }
        queue.withLock { if $0.refusal?.code == .suspended { $0.refusal = nil } }
        return true
    }

    /// Reads over a connection of its own, so that it waits for no body; ``suspend(at:)`` waits for it.
    ///
    /// In memory it reads over the writer's.
    func readAlone<R>(_ body: (inout Connection) throws -> R) throws -> R {
        ownConnections.enter()
        defer { ownConnections.leave() }
        try requireResumed()
        guard let file = database.file else { return try read { try body(&$0.connection) } }
        var connection = try file.file.openReader(of: file)
        return try body(&connection)
    }
}

/// A file that was moved or is damaged is opened again by the call that notices it.
extension Writer {
    /// Opens the file again if it was moved or is damaged.
    func renew(_ state: WriterState) throws(StoreError) {
        guard state.isLost else { return }
        try requireResumed()
        defer { database = state.database }
        try state.reopen()
    }

    /// Runs a read, and repeats it if the file had to be opened again.
    func retrying<R>(_ body: () throws(StoreError) -> R) throws(StoreError) -> R {
        var attempts = 0
        while true {
            let openings = readers?.openingCount
            do throws(StoreError) {
                return try body()
            } catch {
                attempts += 1
                guard attempts < 3, try renew(after: error, openings) else { throw error }
            }
        }
    }

    /// Opens the file again after a read that failed, and returns whether it is worth a second attempt.
    ///
    /// - Parameter openings: The number of openings before the read.
    private func renew(after error: StoreError, _ openings: Int?) throws(StoreError) -> Bool {
        guard error.isAboutMove || error.code == .corrupt, !isOwned else { return false }
        try requireResumed()
        return try locked { state throws(StoreError) in
            guard let state else { throw .closed }
            if readers?.openingCount == openings { state.note(error) }
            try renew(state)
            return readers?.openingCount != openings
        }
    }

    /// Salvages the file, also if the options say that damage is not repaired.
    func repair() throws(StoreError) -> SalvageReport? {
        try locked { state throws(StoreError) in
            guard let state else { throw .closed }
            if state.database.file == nil { return nil }
            if state.loss == .suspended { throw .suspended }
            state.loss = .damaged
            try renew(state)
            for case .event(.replaced(let salvage)) in state.outbox.notices.reversed() { return salvage }
            return nil
        }
    }
}

extension Writer {
    /// Does what follows transactions.
    ///
    /// The call's part of evictions goes on. Between its slices other threads write. A call of the serial queue leaves it to
    /// another thread, so that the bodies of tasks wait for one slice at most.
    ///
    /// - Parameters:
    ///   - finished: The requests that were run, whose tasks go on.
    ///   - waits: Whether this thread may wait for files to be deleted.
    func finish(_ outbox: Outbox, _ finished: [Request] = [], waits: Bool) {
        finishOnce(outbox, finished, waits: waits)
        if outbox.share.isEmpty && !outbox.needsCount { return }
        if isOnSerialQueue || !waits { return goOnInBackground(outbox.share, needsCount: outbox.needsCount) }
        if !outbox.share.isEmpty { goOn(outbox.share) }
        if outbox.needsCount { countAfterWrite() }
    }

    func finishOnce(_ outbox: Outbox, _ finished: [Request], waits: Bool) {
        // Memory first: no program hears of a removal whose value is still served.
        for notice in outbox.notices {
            switch notice {
            case .opened(let watch, let isSameFile):
                for tier in tiers.all.values.joined() { tier.storeWasOpened(watch, isSameFile: isSameFile) }
            case .removed(let rows, _, let tiers): for tier in tiers { tier.rowsWereRemoved(rows) }
            case .event: break
            }
        }
        for notice in outbox.notices { if let event = notice.event { report(event) } }
        if !outbox.files.isEmpty, let files = outbox.folder {
            if waits { files.discard(outbox.files) } else { files.discardLater(outbox.files) }
        }
        for request in finished { request.resume() }
    }
}
