internal import Dispatch

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
