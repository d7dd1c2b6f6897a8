#if canImport(Darwin) && !LARDER_TSAN
internal import Darwin

/// Takes the place of `Synchronization.Mutex`, which Apple's systems have since macOS 15 and iOS 18.
///
/// In a debug build it is counted: a test says how often each operation takes a lock.
///
/// Safety: The value is reached only while the lock is held, and both are freed with this value, which cannot be copied.
public struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private let lock: UnsafeMutablePointer<os_unfair_lock>
    private let value: UnsafeMutablePointer<Value>

    /// Guards `value`.
    public init(_ value: consuming sending Value) {
        lock = .allocate(capacity: 1)
        lock.initialize(to: os_unfair_lock())
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        lock.deallocate()
    }

    /// Runs `body` while the mutex is held.
    public borrowing func withLock<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        LockCount.note()
        os_unfair_lock_lock(lock)
        defer { os_unfair_lock_unlock(lock) }
        return try body(&value.pointee)
    }

    /// Runs `body` while the mutex is held, if it can be had at once.
    public borrowing func withLockIfAvailable<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result? {
        LockCount.note()
        guard os_unfair_lock_trylock(lock) else { return nil }
        defer { os_unfair_lock_unlock(lock) }
        return try body(&value.pointee)
    }
}
#endif
