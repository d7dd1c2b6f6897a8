internal import Dispatch
internal import LarderLocks

/// Requests that wait are run in batches, one transaction each.
extension Writer {
    private static let batchLimit = 512

    /// Runs batches of the waiting requests until a condition holds.
    func drain(until isDone: () -> Bool) throws(StoreError) {
        var (aftermath, finished) = (Aftermath(), [Request]())
        try lock.withLock { state in
            repeat { finished += drain(state) } while !isDone()
            aftermath = state?.takeAftermath() ?? aftermath
        }
        finish(aftermath, finished, waits: true)
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
        try state.commit { epoch in for request in batch { request.end(epoch) } }
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
