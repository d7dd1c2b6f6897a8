#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

extension FileSystem {
    /// Runs `body` while this thread, of all threads of all processes, holds the lock of the file at `path`.
    ///
    /// The lock is the kernel's and ends with the process. The file is made if it is missing and never deleted: a lock
    /// on a deleted file would exclude nobody.
    ///
    /// - Returns: What `body` returns, or nil if the lock was not to be had for `milliseconds`.
    package static func withLock<R>(
        _ path: String, waiting milliseconds: Int32, _ body: () -> R
    ) throws(SystemError) -> R? {
        var waited: Int32 = 0
        while true {
            let descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw failure("open", path) }
            // Ends the lock as well.
            defer { close(descriptor) }
            guard try lock(descriptor, path, milliseconds, &waited) else { return nil }
            // Of a file that was deleted with its folder the lock excludes nobody who comes later.
            if try status(path)?.identity == identity(descriptor, path) { return body() }
        }
    }

    private static func identity(_ descriptor: Int32, _ path: String) throws(SystemError) -> FileIdentity {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("fstat", path) }
        return FileIdentity(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
    }

    private static func lock(
        _ descriptor: Int32, _ path: String, _ milliseconds: Int32, _ waited: inout Int32
    ) throws(SystemError) -> Bool {
        var pause: Int32 = 1
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else { throw failure("flock", path) }
            guard waited < milliseconds else { return false }
            let now = min(pause, milliseconds - waited)
            // A blocking flock has no limit of time, so the wait is a poll: 1, 2, 4, then 8 ms.
            CurrentThread.pause(milliseconds: now)
            waited += now
            pause = min(pause * 2, 8)
        }
        return true
    }
}
