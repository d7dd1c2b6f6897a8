internal import LarderLocks
internal import LarderStore

/// A key that an `update` works on, with the updates that wait for it.
@usableFromInline
struct UpdateHold<Key: Hashable & Sendable>: Sendable {
    let key: Key
    let hash: UInt64
    let gate: UpdateGate
    /// The number of calls that are past the gate, or wait at it.
    var users: Int
    /// A Boolean value that indicates whether the key was written since the running update read it.
    ///
    /// That write is the later one.
    var isOverwritten = false
}

/// Lets one update of a key run at a time.
final class UpdateGate: Sendable {
    /// Held while the body runs, which is the caller's code.
    ///
    /// The gate exists for that; the cache's own lock is not held during the body.
    private let mutex = Mutex(())
    /// The thread inside, or 0: only a thread that is inside can find its own number here.
    private let owner = Atomic<UInt>(0)

    func pass<R>(_ body: () throws -> R) rethrows -> R {
        let thread = CurrentThread.identity
        precondition(
            owner.load(ordering: .relaxed) != thread,
            "MemoryCache.update was called from inside the update of the same key, and would wait for itself.")
        return try mutex.withLock { _ throws(any Error) in
            owner.store(thread, ordering: .relaxed)
            defer { owner.store(0, ordering: .relaxed) }
            return try body()
        }
    }
}
