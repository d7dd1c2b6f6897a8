internal import LarderSQLite

/// A change or a chore that waits for the writer, and its result.
///
/// Safety: `result` and `performed` are written under the writer's lock, and read under it or by the caller after `isDone` was seen under it.
/// `continuation`, `deadline`, `isCancelled` and `isWaiting` are used under the queue's lock until the request is taken out of the queue, and then by
/// the thread that took it.
final class Request: MadeChange, @unchecked Sendable {
    enum Work: Sendable {
        /// - Parameter evicts: A Boolean value that indicates whether other rows of the cache are evicted if the disk is full.
        case change(Change, CacheDeclaration, evicts: Bool)
        /// A chore of the store itself: opening, upkeep.
        case chore(@Sendable (WriterState) throws -> Outcome, whenDone: (@Sendable () -> Void)? = nil)
    }

    let work: Work
    var deadline = Deadline(in: 0)

    private(set) var result: Result<Outcome, StoreError>?
    /// The result of the work, if the open transaction is committed.
    private var performed: Result<Outcome, StoreError> = .failure(.closed)
    var continuation: CheckedContinuation<Outcome, any Error>?
    var isCancelled = false
    /// A Boolean value that indicates whether it is in the queue.
    var isWaiting = false

    init(_ work: Work) { self.work = work }

    var isDone: Bool { result != nil }

    var isFull: Bool { if case .failure(let error) = result { error.code == .storageFull } else { false } }

    /// The bytes that it adds; nil if it adds none.
    var addedBytes: Int? {
        switch work {
        case .change(let change, _, _):
            switch change.work {
            case .put(let entries): entries.reduce(0) { $0 + $1.payload.count }
            case .attributes, .note: 0
            case .remove, .take, .clear: nil
            }
        case .chore: nil
        }
    }

    /// The cache whose rows may go if the disk is full.
    var evictedCache: CacheDeclaration? {
        if case .change(_, let cache, evicts: true) = work, addedBytes != nil { cache } else { nil }
    }

    /// Does the work in the open transaction, and keeps what comes of it until the commit.
    ///
    /// It can be done again. What is refused has changed nothing, which does not concern the other requests of the batch.
    func perform(_ state: WriterState) throws {
        switch work {
        case .change(let change, let cache, _):
            do throws(StoreError) {
                performed = .success(try state.make(change, on: cache))
            } catch  where error.isRefusal {
                performed = .failure(error)
            }
        case .chore(let body, _):
            performed = .success(try body(state))
        }
    }

    // MARK: After the commit

    var cache: CacheIdentity? { if case .change(_, let cache, _) = work { cache.identity } else { nil } }
    var tier: (any TierDelegate)? { if case .change(let change, _, _) = work { change.tier } else { nil } }

    var overtaken: Overtaken? {
        guard case .change(let change, _, _) = work, case .success(let outcome) = performed else { return nil }
        return change.overtakenAfter(outcome)
    }

    /// What it displaces is released by its caller.
    func end(_ epoch: UInt32, _: inout Deferred) {
        result = performed.map { outcome in
            var (outcome, deferred) = (outcome, Deferred())
            outcome.epoch = epoch
            switch work {
            case .change(let change, _, _): change.taking?(outcome, &deferred)
            case .chore(_, let whenDone): whenDone?()
            }
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
