internal import LarderLocks
internal import LarderStore

/// Lets one update of a memory cache run at a time.
///
/// Updates that its body makes run inside it.
final class UpdateLock: Sendable {
    /// Held while the body runs, which is the caller's code; the cache's own lock is not held then.
    private let mutex = Mutex(())
    /// The thread inside, or 0: only a thread that is inside can find its own number here.
    private let owner = Atomic<UInt>(0)

    func pass<R>(_ body: () throws -> R) rethrows -> R {
        let thread = CurrentThread.identity
        if owner.load(ordering: .relaxed) == thread { return try body() }
        return try mutex.withLock { _ throws(any Error) in
            owner.store(thread, ordering: .relaxed)
            defer { owner.store(0, ordering: .relaxed) }
            return try body()
        }
    }
}
