#if canImport(Darwin) && !LARDER_TSAN
public import LarderCLocks

/// Takes the place of `Synchronization.Mutex`, which Apple's systems have since macOS 15 and iOS 18.
///
/// In a debug build it is counted: a test says how often each operation takes a lock.
///
/// Safety: The value is reached only while the lock is held, and both are freed with this value, which cannot be copied.
public struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    @usableFromInline let lock: UnsafeMutablePointer<larder_lock>
    @usableFromInline let value: UnsafeMutablePointer<Value>

    /// Guards `value`.
    @inlinable
    public init(_ value: consuming sending Value) {
        lock = larder_lock_make()
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
    }

    @inlinable
    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        larder_lock_free(lock)
    }

    /// Runs `body` while the mutex is held.
    @inlinable
    public borrowing func withLock<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        LockCount.note()
        larder_lock_lock(lock)
        defer { larder_lock_unlock(lock) }
        return try body(&value.pointee)
    }

    /// Runs `body` while the mutex is held, if it can be had at once.
    @inlinable
    public borrowing func withLockIfAvailable<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result? {
        LockCount.note()
        guard larder_lock_try(lock) else { return nil }
        defer { larder_lock_unlock(lock) }
        return try body(&value.pointee)
    }
}
#endif
