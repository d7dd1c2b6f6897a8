#if !DEBUG && !LARDER_TSAN && !canImport(Darwin)
@_exported public import struct Synchronization.Mutex
#elseif !LARDER_TSAN && !canImport(Darwin)
internal import Synchronization

/// The standard mutex, which is counted: a test says how often each operation takes a lock.
public struct Mutex<Value: ~Copyable>: ~Copyable, Sendable {
    private let mutex: Synchronization.Mutex<Value>

    /// Guards `value`.
    public init(_ value: consuming sending Value) { mutex = Synchronization.Mutex(value) }

    /// Runs `body` while the mutex is held.
    public borrowing func withLock<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        LockCount.note()
        return try mutex.withLock(body)
    }

    /// Runs `body` while the mutex is held, if it can be had at once.
    public borrowing func withLockIfAvailable<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result? {
        LockCount.note()
        return try mutex.withLockIfAvailable(body)
    }
}
#endif
