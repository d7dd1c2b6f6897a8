internal import Dispatch
internal import LarderLocks

/// A few serial queues on which tasks' reads wait for the disk, as many as a store has reading connections.
///
/// No read of a file waits for a running body, so the queues are never kept for long. A store in memory has only the
/// writer's connection, and its reads do not use these queues.
enum Workers {
    private static let queues = (0..<4).map { DispatchQueue(label: "larder.read.\($0)") }
    private static let last = Atomic(0)

    /// Runs work that may wait for the disk, without a thread of the cooperative pool.
    static func run<R: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        let number = last.wrappingAdd(1, ordering: .relaxed).newValue & 3
        let result: Result<R, Failure> = await withCheckedContinuation { continuation in
            queues[number].async {
                continuation.resume(returning: Result { () throws(Failure) in try work() })
            }
        }
        return try result.get()
    }
}
