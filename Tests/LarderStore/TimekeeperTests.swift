import Foundation
import LarderStore
import LarderTestSupport
import Testing

struct TimekeeperTests {
    /// A timer whose threads are counted, and some of which cannot be started.
    private final class CountedTimer: Sendable {
        private let timer = Locked<TimerThread?>(nil)
        private let refused: Set<Int>
        private let attempts = Counter()
        let started = Counter()

        init(refusing refused: Set<Int> = []) {
            self.refused = refused
            timer.change { $0 = TimerThread { [weak self] in self?.start() ?? false } }
        }

        private func start() -> Bool {
            if refused.contains(attempts.increment()) { return false }
            started.increment()
            Thread.detachNewThread { [timer] in timer.value?.runNextJob() }
            return true
        }

        var waitingCount: Int { timer.value?.waitingCount ?? 0 }
        func fire(_ wakeup: Wakeup, after delay: Duration = .zero) { timer.value?.fire(wakeup, after: delay) }
        func remove(_ wakeup: Wakeup) { timer.value?.remove(wakeup) }
    }

    @Test func `brief actions start no thread, and what one leaves has a thread of its own`() throws {
        let (timer, looks, ends) = (CountedTimer(), Counter(), Counter())
        @Sendable func look() -> (@Sendable () -> Void)? {
            if looks.increment() == 50 { return { ends.increment() } }
            timer.fire(Wakeup(brief: look), after: .microseconds(100))
            return nil
        }
        timer.fire(Wakeup(brief: look))
        try Waiting.until { ends.value == 1 }
        #expect(looks.value == 50 && timer.started.value == 2)
    }

    @Test func `a timer whose thread cannot be started fires with the next one`() throws {
        let (timer, calls) = (CountedTimer(refusing: [1]), Counter())
        timer.fire(Wakeup { calls.increment() })
        #expect(timer.waitingCount == 1 && timer.started.value == 0)
        timer.fire(Wakeup { calls.increment() })
        try Waiting.until { calls.value == 2 }
        #expect(timer.waitingCount == 0)
    }

    @Test func `an action for which no thread can be started is run later`() throws {
        let (timer, calls) = (CountedTimer(refusing: [2]), Counter())
        timer.fire(Wakeup { calls.increment() })
        try Waiting.until { calls.value == 1 }
        #expect(timer.waitingCount == 0)
    }

    @Test func `a wakeup that is removed releases its action at once`() {
        let timer = CountedTimer(refusing: [1, 2, 3])
        weak var held: Counter?
        do {
            let counter = Counter()
            held = counter
            let wakeup = Wakeup { counter.increment() }
            timer.fire(wakeup, after: .seconds(3600))
            timer.fire(Wakeup {}, after: .seconds(1800))
            timer.remove(wakeup)
            timer.remove(wakeup)
        }
        #expect(held == nil && timer.waitingCount == 1)
    }

    @Test func `wakeups leave the heap in the order of their times, without those that were removed`() {
        var (heap, random) = (WakeupHeap<Int>(), Seeded())
        var expected: [Int] = []
        for _ in 0..<20 {
            let items = (0..<200).map { _ in (due: Int.random(in: 0..<100, using: &random), wakeup: Wakeup {}) }
            for item in items { heap.insert(item.wakeup, at: item.due) }
            expected += items.map(\.due)
            for item in items.shuffled(using: &random).prefix(120) {
                #expect(heap.remove(item.wakeup) === item.wakeup && heap.remove(item.wakeup) == nil)
                expected.remove(at: expected.firstIndex(of: item.due) ?? 0)
            }
        }
        var found: [Int] = []
        while let first = heap.first {
            found.append(first.due)
            #expect(heap.removeFirst() === first.wakeup)
        }
        #expect(found == expected.sorted() && heap.count == 0, "SEED=\(random.seed)")
    }

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
