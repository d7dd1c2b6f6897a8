import Dispatch
import Larder
import Synchronization

/// The longest that one call takes: while the cache grows to a million entries, and while others list it.
var memoryPauseScenarios: [Scenario] {
    let count = 1_000_000

    func growing<Store: KeyedStore<Int, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        Variant(name) {
            let store = make()
            var generator = SeededGenerator(seed: 3)
            return longest(count) { store[Int(truncatingIfNeeded: generator.next())] = $0 }
        }
    }

    /// How long a writer waits at most while another thread lists.
    func listing<Store: KeyedStore<Int, Int>>(
        _ name: String, _ make: @escaping () -> Store, _ list: @escaping @Sendable (Store) -> Void
    ) -> Variant {
        var filled: Store?
        return Variant(name) {
            let cache = filled ?? fill(make(), with: Array(0..<count))
            filled = cache
            let isDone = Atomic(false)
            let longestWait = Mutex(0.0)
            DispatchQueue.concurrentPerform(iterations: 2) { thread in
                if thread == 0 {
                    list(cache)
                    isDone.store(true, ordering: .relaxed)
                } else {
                    var worst = 0.0
                    var key = 0
                    while !isDone.load(ordering: .relaxed) {
                        worst = max(worst, longest(64) { cache[(key &+ $0) % count] = $0 })
                        key &+= 64
                    }
                    longestWait.withLock { $0 = worst }
                }
            }
            return longestWait.withLock(\.self)
        }
    }

    return [
        Scenario(
            "memory-int-longest-set-growing", unit: "us", target: 1,
            [
                growing("larder") { MemoryCache<Int, Int>(clearsOnMemoryPressure: false) },
                growing("dictionary") { LockedDictionary<Int, Int>() },
            ]),
        Scenario(
            "memory-int-longest-set-while-listing", unit: "us", target: 1,
            [
                listing(
                    "larder", { MemoryCache<Int, Int>(clearsOnMemoryPressure: false) }, { consume($0.orderedKeys) }),
                listing("dictionary", { LockedDictionary<Int, Int>() }, { consume($0.keys) }),
            ]),
    ]
}

/// The longest of so many calls, in microseconds.
func longest(_ count: Int, _ body: (Int) -> Void) -> Double {
    var worst = Duration.zero
    let clock = ContinuousClock()
    var last = clock.now
    for index in 0..<count {
        body(index)
        let now = clock.now
        worst = max(worst, last.duration(to: now))
        last = now
    }
    return Double(worst.components.attoseconds) / 1e12 + Double(worst.components.seconds) * 1e6
}
