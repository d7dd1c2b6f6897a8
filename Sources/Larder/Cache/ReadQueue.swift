internal import Dispatch
internal import LarderLocks

/// A serial queue on which tasks' reads wait for the disk; there are as many as a store has reading connections.
///
/// No read of a file waits for a running body, so the queues are never kept for long. A store in memory has only the
/// writer's connection, and its reads do not use these queues.
final class ReadQueue: Sendable {
    private static let all = (0..<4).map { ReadQueue($0) }

    private let queue: DispatchQueue
    private let waitingCount = Atomic(0)

    private init(_ number: Int) { queue = DispatchQueue(label: "larder.read.\(number)") }

    /// Runs work that may wait for the disk, without a thread of the cooperative pool, on the queue with the least work.
    static func run<R: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        var least = all[0]
        for worker in all where worker.count < least.count { least = worker }
        let worker = least
        worker.waitingCount.add(1, ordering: .relaxed)
        let result: Result<R, Failure> = await withCheckedContinuation { continuation in
            worker.queue.async {
                let result = Result { () throws(Failure) in try work() }
                worker.waitingCount.subtract(1, ordering: .relaxed)
                continuation.resume(returning: result)
            }
        }
        return try result.get()
    }

    private var count: Int { waitingCount.load(ordering: .relaxed) }
}

/// Runs blocking work outside the cooperative pool, and waits for it without holding one of its threads.
package func offload<R: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> R
) async throws(Failure) -> R {
    let result: Result<R, Failure> = await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
            continuation.resume(returning: Result { () throws(Failure) in try work() })
        }
    }
    return try result.get()
}
