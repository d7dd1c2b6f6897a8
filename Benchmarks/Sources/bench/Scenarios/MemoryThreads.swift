import Dispatch
import Larder

/// Two threads reading one store at random, per get.
var memoryThreadScenarios: [Scenario] {
    var generator = SeededGenerator(seed: 9)
    let keys = (0..<200_000).map { _ in Int(truncatingIfNeeded: generator.next()) }
    let orders = [keys.shuffled(using: &generator), keys.shuffled(using: &generator)]

    func reading<Store: KeyedStore<Int, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        Variant(name, operations: keys.count, once: { fill(make(), with: keys) }) { store in
            DispatchQueue.concurrentPerform(iterations: 2) { thread in
                var sum = 0
                for key in orders[thread] { sum &+= store[key] ?? 1 }
                consume(sum)
            }
        }
    }

    return [
        Scenario(
            "memory-int-two-threads", target: 1.3,
            [
                reading("larder") { MemoryCache<Int, Int>(clearsOnMemoryPressure: false) },
                reading("dictionary") { LockedDictionary<Int, Int>() },
                reading("nodes") { NodeLRU<Int, Int>() },
            ])
    ]
}
