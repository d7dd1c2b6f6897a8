#if os(Linux)
import Foundation
import Glibc
import Larder
import LarderTestSupport
import Testing

struct FileLockTests {
    @Test func `who waited for a lock file that was deleted locks the one that stands there`() throws {
        let folder = try TemporaryFolder()
        let path = folder("lock").path
        let outcome = try FileSystem.withLock(path, waiting: 0) {
            let second = SideThread {
                try FileSystem.withLock(path, waiting: 60_000) {
                    let other = open(path, O_RDWR)
                    defer { close(other) }
                    return other >= 0 && flock(other, LOCK_EX | LOCK_NB) != 0
                }
            }
            let waiting = Result { try OpenFiles.wait(for: { $0 == path }, until: { $0 == 2 }) }
            unlink(path)
            return (second, waiting)
        }
        // Without the lock nobody was made to wait for it.
        let (second, waiting) = try #require(outcome)
        let wasLocked = try second.value()
        try waiting.get()
        #expect(wasLocked == true)
    }
}
#endif
