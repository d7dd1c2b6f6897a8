import Larder

/// The five operations on a cache of 200,000 entries, over one kind of key.
struct MemoryOperations<Key: Hashable & Sendable> {
    static var entryCount: Int { 200_000 }

    /// Prefix of the scenarios' names.
    let name: String
    /// The keys that are stored.
    let stored: [Key]
    /// The same keys as other objects, to look up with.
    let asked: [Key]
    /// The same in another order.
    let shuffled: [Key]
    /// Keys that are not stored.
    let absent: [Key]

    init(name: String, make: (UInt64) -> Key) {
        var generator = SeededGenerator(seed: 42)
        let numbers = (0..<Self.entryCount).map { _ in generator.next() }
        self.name = name
        stored = numbers.map(make)
        asked = numbers.map(make)
        shuffled = numbers.shuffled(using: &generator).map(make)
        absent = (0..<Self.entryCount).map { _ in make(generator.next()) }
    }

    /// The targets are the greatest ratios to a `Dictionary` behind a `Mutex`.
    func scenarios(
        getInOrder: Double, getAtRandom: Double, setNew: Double, replace: Double, miss: Double
    ) -> [Scenario] {
        [
            filled("get-in-order", target: getInOrder, reading: asked),
            filled("get-at-random", target: getAtRandom, reading: shuffled),
            Scenario(
                "\(name)-set-new", target: setNew,
                [
                    empty("larder") { MemoryCache<Key, Int>(clearsOnMemoryPressure: false) },
                    empty("dictionary") { LockedDictionary<Key, Int>() },
                    empty("nodes") { NodeLRU<Key, Int>() },
                    empty("NSCache") { FoundationCache<Key, Int>() },
                ]),
            Scenario(
                "\(name)-replace", target: replace,
                [
                    replacing("larder") { MemoryCache<Key, Int>(clearsOnMemoryPressure: false) },
                    replacing("dictionary") { LockedDictionary<Key, Int>() },
                    replacing("nodes") { NodeLRU<Key, Int>() },
                ]),
            filled("miss", target: miss, reading: absent),
        ]
    }

    private func filled(_ operation: String, target: Double, reading keys: [Key]) -> Scenario {
        Scenario(
            "\(name)-\(operation)", target: target,
            [
                reading("larder", keys) { MemoryCache<Key, Int>(clearsOnMemoryPressure: false) },
                reading("dictionary", keys) { LockedDictionary<Key, Int>() },
                reading("nodes", keys) { NodeLRU<Key, Int>() },
                reading("NSCache", keys) { FoundationCache<Key, Int>() },
            ])
    }

    @inline(__always)
    private func reading<Store: KeyedStore<Key, Int>>(
        _ name: String, _ keys: [Key], _ make: @escaping () -> Store
    ) -> Variant {
        Variant(name, operations: keys.count, once: { fill(make(), with: stored) }) { store in
            var sum = 0
            for key in keys { sum &+= store[key] ?? 1 }
            consume(sum)
        }
    }

    @inline(__always)
    private func empty<Store: KeyedStore<Key, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        Variant(name, operations: stored.count, eachTime: make) { store in
            for key in stored { store[key] = 1 }
        }
    }

    @inline(__always)
    private func replacing<Store: KeyedStore<Key, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        Variant(name, operations: shuffled.count, once: { fill(make(), with: stored) }) { store in
            for key in shuffled { store[key] = 2 }
        }
    }
}

@inline(__always)
func fill<Store: KeyedStore<Key, Int>, Key>(_ store: Store, with keys: [Key]) -> Store {
    for (index, key) in keys.enumerated() { store[key] = index }
    return store
}
