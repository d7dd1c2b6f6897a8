import Foundation
import Larder
import LarderTestSupport
import Testing

/// Generations in a process whose tasks have one thread.
struct GenerationPoolTests {
    // case 269
    @Test(.enabled(if: OneProcessor.isAvailable, "this system does not let us say that there is one processor"))
    func `no generation blocks the pool, though it has one thread and the disk is held up`() throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["hold-up-generators", folder("store.sqlite").path], through: OneProcessor.wrapper)
        let lines = try child.finish().lines
        #expect(
            lines == [
                "one thread true", "served 1", "held up 7 0 false 1", "done 6 7 1",
                "stored [1, 2, 3, 4, 5, 6, 7, 8] 11",
            ])
    }
}
