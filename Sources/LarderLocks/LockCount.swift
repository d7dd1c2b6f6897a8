/// Tells a program of a debug build each time that a lock is asked for.
public enum LockCount {
    #if DEBUG
    /// Safety: it is set once, before the program creates its first thread.
    nonisolated(unsafe) public static var observer: (@convention(c) () -> Void)?
    #endif

    /// Notes that the calling thread asks for a lock.
    @inlinable @inline(__always)
    public static func note() {
        #if DEBUG
        observer?()
        #endif
    }
}
