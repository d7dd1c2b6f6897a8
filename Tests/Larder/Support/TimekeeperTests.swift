import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

struct TimekeeperTests {
    @Test func `a moment is rounded to the nearest millisecond, and the absurd is kept within bounds`() {
        func milliseconds(_ seconds: Double) -> Int64 {
            SystemClock.milliseconds(of: Date(timeIntervalSince1970: seconds))
        }
        #expect(milliseconds(1.0004) == 1000)
        #expect(milliseconds(1.0006) == 1001)
        #expect(milliseconds(-1.0006) == -1001)
        // case 101
        #expect(milliseconds(4_102_444_800) == 4_102_444_800_000)
        #expect(milliseconds(.infinity) == .max)
        #expect(milliseconds(-.infinity) == .min)
        #expect(milliseconds(1e300) == .max)
        #expect(milliseconds(.nan) == 0)
    }

    @Test func `the system's time calls back, and a cancelled wake-up does not`() async {
        let delay = Duration.milliseconds(50)
        /// A stream to which a wake-up was to yield that was cancelled in time.
        func stream() -> (AsyncStream<Int>, AsyncStream<Int>.Continuation) {
            while true {
                let (calls, continuation) = AsyncStream.makeStream(of: Int.self)
                let start = ContinuousClock.now
                let cancelled = Timekeeper.system.wake(delay) { continuation.yield(0) }
                cancelled.cancel()
                // Held up for as long as that, it may have called back before.
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

    @Test func `an injected clock and an injected wait are used`() throws {
        let time = ManualTime(Date(timeIntervalSince1970: 5))
        let configuration = time.configuration
        #expect(configuration.clock() == Date(timeIntervalSince1970: 5))
        time.advance(by: .seconds(2))
        #expect(configuration.clock() == Date(timeIntervalSince1970: 7))
        let fired = Atomic(false)
        _ = configuration.wake(.seconds(3)) { fired.store(true, ordering: .relaxed) }
        time.advance(by: .milliseconds(2999))
        #expect(fired.load(ordering: .relaxed) == false)
        time.advance(by: .milliseconds(1))
        #expect(fired.load(ordering: .relaxed) == true)
    }
}
