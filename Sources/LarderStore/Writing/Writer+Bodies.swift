internal import Dispatch
internal import LarderLocks
internal import LarderSQLite

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
