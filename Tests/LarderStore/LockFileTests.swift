#if os(Linux)
import Foundation
import Glibc
import LarderStore
import LarderTestSupport
import Testing

struct LockFileTests {
    @Test func `a thread that waits for a lock file that is deleted in the meantime locks the next file`() throws {
        let folder = try TemporaryFolder()
        let file = LockFile(path: folder.real("lock").path)
        let path = file.path
        let outcome = try file.withLock(until: Deadline(in: 0)) {
            let second = SideThread {
                try file.withLock(until: Deadline(in: 60_000)) {
                    let other = open(path, O_RDWR)
                    defer { close(other) }
                    return other >= 0 && flock(other, LOCK_EX | LOCK_NB) != 0
                }
            }
            // Each of the two has the file open.
            let waiting = Result {
                try OpenFiles.wait(for: { $0 == path }, until: { $0 == 2 || second.result != nil })
            }
            unlink(path)
            return (second, waiting)
        }
        // Before the lock is free, nothing may wait for the thread.
        let (second, waiting) = try #require(outcome)
        let wasLocked = try second.value()
        try waiting.get()
        #expect(wasLocked == true)
    }
}
#endif
