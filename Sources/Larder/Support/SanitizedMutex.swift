#if LARDER_TSAN
#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// Stands in for `Synchronization.Mutex` in builds for the thread sanitizer, by having its name in this module.
///
/// The standard library is not built with the sanitizer, so on Linux it cannot see that one thread's unlocking comes
/// before another's locking, and reports everything a mutex guards. It does know the system's mutexes.
///
/// Safety: the value is reached through the pointer only inside ``withLock(_:)``, which holds the system's mutex.
@usableFromInline
struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private let value: UnsafeMutablePointer<Value>
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>

    @usableFromInline
    init(_ initial: consuming sending Value) {
        value = .allocate(capacity: 1)
        value.initialize(to: initial)
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
        value.deinitialize(count: 1)
        value.deallocate()
    }

    @usableFromInline
    borrowing func withLock<R: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending R
    ) throws(E) -> sending R {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        nonisolated(unsafe) let value = value
        return try body(&value.pointee)
    }
}
#endif
