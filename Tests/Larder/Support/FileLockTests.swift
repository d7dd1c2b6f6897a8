#if os(Linux)
import Foundation
import Glibc
import Larder
import LarderTestSupport
import Synchronization
import Testing

struct FileLockTests {
    @Test func `who waited for a lock file that was deleted locks the one that stands there`() throws {
        let folder = try TemporaryFolder()
        let path = folder("lock").path
        let wasLocked = Mutex(false)
        let done = DispatchSemaphore(value: 0)
        let outcome = try FileSystem.withLock(path, waiting: 0) { () -> Result<Void, any Error> in
            Thread.detachNewThread {
                do throws(SystemError) {
                    _ = try FileSystem.withLock(path, waiting: 60_000) {
                        let other = open(path, O_RDWR)
                        defer { close(other) }
                        wasLocked.withLock { $0 = other >= 0 && flock(other, LOCK_EX | LOCK_NB) != 0 }
                    }
                } catch {
                    Issue.record(error)
                }
                done.signal()
            }
            let waiting = Result { try OpenFiles.wait(for: { $0 == path }, until: { $0 == 2 }) }
            unlink(path)
            return waiting
        }
        // Without the lock nobody was made to wait for it.
        let waiting = try #require(outcome)
        done.wait()
        try waiting.get()
        #expect(wasLocked.withLock { $0 })
    }
}
#endif
