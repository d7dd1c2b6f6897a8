internal import Dispatch
internal import LarderLocks

/// The task of a body that waits for the writer, until the body begins or the task is cancelled.
final class WaitingBody<R: Sendable>: Sendable {
    private let state = Mutex((continuation: CheckedContinuation<R, any Error>?.none, isCancelled: false))

    /// Returns whether the body may wait; if not, the task was cancelled and goes on.
    func begin(_ continuation: CheckedContinuation<R, any Error>) -> Bool {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.continuation = continuation }
            return state.isCancelled
        }
        if isCancelled { continuation.resume(throwing: CancellationError()) }
        return !isCancelled
    }

    /// Returns the task for the body that begins; nil if it was cancelled.
    func take() -> CheckedContinuation<R, any Error>? { state.withLock { $0.continuation.take() } }

    func cancel() {
        let continuation = state.withLock { state in
            state.isCancelled = true
            return state.continuation.take()
        }
        continuation?.resume(throwing: CancellationError())
    }
}

extension Writer {
    /// Runs a body of a task on the serial queue.
    ///
    /// A body that has not begun when the task is cancelled never runs.
    func exclusive<R: Sendable>(_ body: @escaping @Sendable (WriterState) throws -> R) async throws -> R {
        let waiting = WaitingBody<R>()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard waiting.begin(continuation) else { return }
                serialQueue.async { [self] in
                    var begun: CheckedContinuation<R, any Error>?
                    let result = Result {
                        try exclusive { state in
                            begun = waiting.take()
                            if begun == nil { throw CancellationError() }
                            return try body(state)
                        }
                    }
                    (begun ?? waiting.take())?.resume(with: result)
                }
            }
        } onCancel: {
            waiting.cancel()
        }
    }
}
