internal import Dispatch

/// Runs blocking work outside the cooperative pool, and waits for it without holding one of its threads.
package func offload<R: Sendable>(
    _ work: @escaping @Sendable () throws(CacheError) -> R
) async throws(CacheError) -> R {
    let result: Result<R, CacheError> = await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
            continuation.resume(returning: Result { () throws(CacheError) in try work() })
        }
    }
    return try result.get()
}
