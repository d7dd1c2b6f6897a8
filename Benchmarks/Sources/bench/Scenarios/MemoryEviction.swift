import Larder

/// A set of a new key on a full cache, against the set of a new key into a dictionary.
var memoryEvictionScenarios: [Scenario] {
    let limit = 100_000
    var generator = SeededGenerator(seed: 7)
    let first = (0..<limit).map { _ in Int(truncatingIfNeeded: generator.next()) }
    let second = (0..<limit).map { _ in Int(truncatingIfNeeded: generator.next()) }

    func evicting<Store: KeyedStore<Int, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        Variant(name, operations: limit, eachTime: { fill(make(), with: first) }) { store in
            for key in second { store[key] = 1 }
        }
    }

    return [
        Scenario(
            "memory-int-set-evicting", target: 0.65,
            [
                evicting("larder") { MemoryCache<Int, Int>(countLimit: limit, clearsOnMemoryPressure: false) },
                Variant("dictionary set new", operations: limit, eachTime: { LockedDictionary<Int, Int>() }) { store in
                    for key in second { store[key] = 1 }
                },
                evicting("nodes") { NodeLRU<Int, Int>(limit: limit) },
            ])
    ]
}
