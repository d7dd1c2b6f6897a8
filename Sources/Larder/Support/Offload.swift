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

/// Runs blocking work on some thread of the system's, at low priority, and waits for nothing.
package func offloadInBackground(_ work: @escaping @Sendable () -> Void) {
    DispatchQueue.global(qos: .utility).async(execute: work)
}

/// Runs blocking work outside the cooperative pool, and does not wait for it.
package func handOff(_ work: @escaping @Sendable () -> Void) {
    DispatchQueue.global().async(execute: work)
}
