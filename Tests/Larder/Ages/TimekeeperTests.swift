import Foundation
import Larder
import LarderTestSupport
import Testing

struct TimekeeperTests {
    @Test func `the system's time calls back, and a cancelled wake-up does not`() async {
        let delay = Duration.milliseconds(50)
        /// A stream to which a wake-up would have yielded that was cancelled in time.
        func stream() -> (AsyncStream<Int>, AsyncStream<Int>.Continuation) {
            while true {
                let (calls, continuation) = AsyncStream.makeStream(of: Int.self)
                let start = ContinuousClock.now
                let cancelled = Timekeeper.system.wake(delay) { continuation.yield(0) }
                cancelled.cancel()
                // If the thread was held up for that long, it may have called back before.
                if ContinuousClock.now - start < delay { return (calls, continuation) }
            }
        }
        let (calls, continuation) = stream()
        let wakeup = Timekeeper.system.wake(delay * 2) { continuation.yield(1) }
        var iterator = calls.makeAsyncIterator()
        #expect(await iterator.next() == 1)
        wakeup.fire()
        continuation.finish()
        #expect(await iterator.next() == nil)
    }
}
