import Foundation
import Larder
import LarderTestSupport
import Testing

/// The timer of memory caches.
struct ExpiryTimerTests {
    private let time = ManualTime(Date(timeIntervalSince1970: 1000))
    private let sweeps = Counter()

    private func note(_ timer: ExpiryTimer, end: Int64?, age: Int64) {
        timer.note(end: end, age: age) { [sweeps] in sweeps.increment() }
    }

    @Test func `it waits for the earliest expiration, once`() {
        let timer = ExpiryTimer(time.timekeeper)
        #expect(!timer.isArmed && time.pendingCount == 0)
        note(timer, end: 1_060_000, age: 60_000)
        note(timer, end: 1_090_000, age: 60_000)
        #expect(timer.isArmed && time.pendingCount == 1)
        note(timer, end: 1_030_000, age: 60_000)
        #expect(time.pendingCount == 1)
        // At its end an entry is still served.
        time.advance(by: .seconds(30))
        #expect(sweeps.value == 0)
        time.advance(by: .milliseconds(1))
        #expect(sweeps.value == 1 && !timer.isArmed && time.pendingCount == 0)
    }

    @Test func `there is no timer for entries that never expire`() {
        let timer = ExpiryTimer(time.timekeeper)
        note(timer, end: nil, age: 0)
        note(timer, end: .max, age: 0)
        #expect(!timer.isArmed && time.pendingCount == 0)
    }

    @Test(arguments: [(Int64(0), Int64(1000)), (160_000, 10_000), (86_400_000, 60_000)])
    func `two sweeps are a share of the age apart`(age: Int64, pause: Int64) {
        let timer = ExpiryTimer(time.timekeeper)
        for sweep in 1...3 {
            // It has expired already.
            note(timer, end: 0, age: age)
            time.advance(by: .milliseconds(pause - 1))
            #expect(sweeps.value == sweep - 1)
            time.advance(by: .milliseconds(1))
            #expect(sweeps.value == sweep)
        }
    }

    @Test func `a cancelled timer never fires, and can be set again`() {
        let timer = ExpiryTimer(time.timekeeper)
        note(timer, end: 1_010_000, age: 10_000)
        timer.cancel()
        #expect(!timer.isArmed && time.pendingCount == 0)
        time.advance(by: .seconds(60))
        #expect(sweeps.value == 0)
        note(timer, end: 1_070_000, age: 10_000)
        time.advance(by: .seconds(11))
        #expect(sweeps.value == 1)
    }

    @Test func `moments at the limits of their type are as good as others`() {
        let timer = ExpiryTimer(time.timekeeper)
        note(timer, end: .max - 1, age: .max)
        #expect(timer.isArmed)
        note(timer, end: .min, age: 0)
        time.advance(by: .seconds(1))
        #expect(sweeps.value == 1)
    }
}
