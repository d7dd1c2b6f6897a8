internal import Synchronization

/// The threads that are inside a body which holds a part of the store: a plain write of theirs would wait for itself.
package final class InsideThreads: Sendable {
    private let count = Atomic(0)
    private let threads = Mutex<Set<UInt>>([])

    package init() {}

    /// Runs `body` as one that holds.
    package func enter<R>(_ body: () throws -> R) rethrows -> R {
        let thread = CurrentThread.identity
        threads.withLock { _ = $0.insert(thread) }
        count.add(1, ordering: .relaxed)
        defer {
            count.subtract(1, ordering: .relaxed)
            threads.withLock { _ = $0.remove(thread) }
        }
        return try body()
    }

    /// Whether this thread is inside.
    package var containCurrent: Bool {
        // Only this thread itself can have entered as this thread.
        guard count.load(ordering: .relaxed) > 0 else { return false }
        return threads.withLock { $0.contains(CurrentThread.identity) }
    }

    /// Throws if this thread is inside.
    package func refuseCurrent(_ action: String) throws(CacheError) {
        guard containCurrent else { return }
        throw CacheError(
            .reentrant,
            "cannot \(action) from inside a transaction or an update, which would wait for itself; use what the body was"
                + " given, or do it afterwards")
    }
}
