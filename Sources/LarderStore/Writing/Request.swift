/// A change that waits for the writer, and its result.
///
/// Safety: `result` is written under the writer's lock, and read under it or by the caller after `isDone` was seen under it.
/// `continuation`, `deadline` and `isCancelled` are used under the queue's lock until the request is taken out of the queue, and then by
/// the thread that took it.
final class Request: @unchecked Sendable {
    enum Work: Sendable {
        /// - Parameter evicts: A Boolean value that indicates whether other rows of the cache are evicted if the disk is full.
        case rows(RowOperation, CacheDeclaration, evicts: Bool)
        /// A chore of the store itself: opening, upkeep.
        case block(@Sendable (WriterState) throws -> Outcome)
    }

    let work: Work
    var deadline = Deadline(in: 0)
    private let apply: CacheRows.Apply?

    private(set) var result: Result<Outcome, StoreError>?
    var continuation: CheckedContinuation<Outcome, any Error>?
    var isCancelled = false

    init(_ work: Work, apply: CacheRows.Apply?) { (self.work, self.apply) = (work, apply) }

    var isDone: Bool { result != nil }

    var isFull: Bool { if case .failure(let error) = result { error.isFullDisk } else { false } }

    var adds: Bool {
        switch work {
        case .rows(.put, _, _), .rows(.change, _, _): true
        default: false
        }
    }

    /// A Boolean value that indicates whether it may count the rows of a cache.
    var isLong: Bool { if case .rows(.clear, _, _) = work { true } else { false } }

    /// The cache whose rows may go if the disk is full.
    var evictedCache: CacheDeclaration? {
        if case .rows(_, let cache, evicts: true) = work, adds { cache } else { nil }
    }

    /// Does the work in the open transaction.
    ///
    /// It records nothing here, so it can be done again. What is refused has changed nothing, which does not concern the
    /// other requests of the batch.
    func perform(_ state: WriterState) throws -> Result<Outcome, StoreError> {
        switch work {
        case .rows(let operation, let cache, _):
            do throws(StoreError) {
                return .success(try state.perform(operation, on: cache))
            } catch  where error.isRefusal {
                return .failure(error)
            }
        case .block(let block):
            return .success(try block(state))
        }
    }

    /// Called after the commit, in the order of commits.
    func end(_ result: Result<Outcome, StoreError>, _ epoch: UInt32) {
        self.result = result.map { outcome in
            var (outcome, deferred) = (outcome, Deferred())
            outcome.epoch = epoch
            apply?(outcome, &deferred)
            outcome.deferred = deferred
            return outcome
        }
    }

    func fail(_ error: StoreError) { result = .failure(error) }

    /// Lets the waiting task go on, outside all locks.
    ///
    /// A request without a result was cancelled.
    func resume() { continuation?.resume(with: result.map { $0.mapError { $0 } } ?? .failure(CancellationError())) }
}
