/// A change that waits for the writer, and its result.
///
/// Safety: `result` and `performed` are written under the writer's lock, and read under it or by the caller after `isDone` was seen under it.
/// `continuation`, `deadline`, `isCancelled` and `isWaiting` are used under the queue's lock until the request is taken out of the queue, and then by
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
    /// The result of the work, if the open transaction is committed.
    private var performed: Result<Outcome, StoreError> = .failure(.closed)
    var continuation: CheckedContinuation<Outcome, any Error>?
    var isCancelled = false
    /// A Boolean value that indicates whether it is in the queue.
    var isWaiting = false

    init(_ work: Work, apply: CacheRows.Apply?) { (self.work, self.apply) = (work, apply) }

    var isDone: Bool { result != nil }

    var isFull: Bool { if case .failure(let error) = result { error.code == .storageFull } else { false } }

    /// The bytes that it adds; nil if it adds none.
    var addedBytes: Int? {
        switch work {
        case .rows(.put(let entries, _), _, _): entries.reduce(0) { $0 + $1.payload.count }
        case .rows(.change, _, _), .rows(.note, _, _): 0
        default: nil
        }
    }

    /// The cache whose rows may go if the disk is full.
    var evictedCache: CacheDeclaration? {
        if case .rows(_, let cache, evicts: true) = work, addedBytes != nil { cache } else { nil }
    }

    /// Does the work in the open transaction, and keeps what comes of it until the commit.
    ///
    /// It can be done again. What is refused has changed nothing, which does not concern the other requests of the batch.
    func perform(_ state: WriterState) throws {
        switch work {
        case .rows(let operation, let cache, _):
            do throws(StoreError) {
                performed = .success(try state.perform(operation, on: cache))
            } catch  where error.isRefusal {
                performed = .failure(error)
            }
        case .block(let block):
            performed = .success(try block(state))
        }
    }

    /// Called after the commit, in the order of commits.
    func end(_ epoch: UInt32) {
        result = performed.map { outcome in
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
