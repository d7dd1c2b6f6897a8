import Larder

/// The operations on a cache of 200,000 entries, over one kind of key.
///
/// The keys are made with the first sample that needs them, so that a scenario that is not run costs no memory.
final class MemoryOperations<Key: Hashable & Sendable> {
    static var entryCount: Int { 200_000 }

    /// Prefix of the scenarios' names.
    private let name: String
    private let make: (UInt64) -> Key
    private lazy var numbers = numbers(seed: 42)
    /// The keys that are stored.
    private lazy var stored = numbers.map(make)
    /// The same keys as other objects, to look up with.
    private lazy var asked = numbers.map(make)
    private lazy var uniform = Draws(of: Self.entryCount, .uniform)
    private lazy var zipf = Draws(of: Self.entryCount, .zipf)
    /// Keys that are not stored.
    private lazy var absent = numbers(seed: 44).map(make)

    init(name: String, make: @escaping (UInt64) -> Key) {
        self.name = name
        self.make = make
    }

    private func numbers(seed: UInt64) -> [UInt64] {
        var generator = SeededGenerator(seed: seed)
        return (0..<Self.entryCount).map { _ in generator.next() }
    }

    /// The targets are the greatest ratios to a `Dictionary` behind a `Mutex`.
    func scenarios(setNew: Double, replace: Double, miss: Double) -> [Scenario] {
        [
            filled("get-in-order", target: nil) { self.asked },
            filled("get-at-random", target: nil) { self.uniform(self.numbers).map(self.make) },
            filled("get-zipf", target: nil) { self.zipf(self.numbers).map(self.make) },
            Scenario(
                "\(name)-set-new", target: setNew,
                [
                    empty("larder") { MemoryCache<Key, Int>(clearsOnMemoryPressure: false) },
                    empty("dictionary") { LockedDictionary<Key, Int>() },
                    empty("nodes") { NodeLRU<Key, Int>() },
                    empty("NSCache") { FoundationCache<Key, Int>() },
                ]),
            overwritten("replace-in-order", target: replace) { self.asked },
            overwritten("replace-at-random", target: nil) { self.uniform(self.numbers).map(self.make) },
            filled("miss", target: miss) { self.absent },
        ]
    }

    private func filled(_ operation: String, target: Double?, reading keys: @escaping () -> [Key]) -> Scenario {
        Scenario(
            "\(name)-\(operation)", target: target,
            [
                reading("larder", keys) { MemoryCache<Key, Int>(clearsOnMemoryPressure: false) },
                reading("dictionary", keys) { LockedDictionary<Key, Int>() },
                reading("nodes", keys) { NodeLRU<Key, Int>() },
                reading("NSCache", keys) { FoundationCache<Key, Int>() },
            ])
    }

    private func overwritten(_ operation: String, target: Double?, keys: @escaping () -> [Key]) -> Scenario {
        Scenario(
            "\(name)-\(operation)", target: target,
            [
                replacing("larder", keys) { MemoryCache<Key, Int>(clearsOnMemoryPressure: false) },
                replacing("dictionary", keys) { LockedDictionary<Key, Int>() },
                replacing("nodes", keys) { NodeLRU<Key, Int>() },
            ])
    }

    @inline(__always)
    private func reading<Store: KeyedStore<Key, Int>>(
        _ name: String, _ keys: @escaping () -> [Key], _ make: @escaping () -> Store
    ) -> Variant {
        let store = Lazily { fill(make(), with: self.stored) }
        return Variant(name, operations: Self.entryCount, eachTime: { (store.value, keys()) }) { store, keys in
            var sum = 0
            for key in keys { sum &+= store[key] ?? 1 }
            consume(sum)
        }
    }

    @inline(__always)
    private func empty<Store: KeyedStore<Key, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        Variant(name, operations: Self.entryCount, eachTime: { (make(), self.stored) }) { store, keys in
            for key in keys { store[key] = 1 }
        }
    }

    @inline(__always)
    private func replacing<Store: KeyedStore<Key, Int>>(
        _ name: String, _ keys: @escaping () -> [Key], _ make: @escaping () -> Store
    ) -> Variant {
        let store = Lazily { fill(make(), with: self.stored) }
        return Variant(name, operations: Self.entryCount, eachTime: { (store.value, keys()) }) { store, keys in
            for key in keys { store[key] = 2 }
        }
    }
}

@inline(__always)
func fill<Store: KeyedStore<Key, Int>, Key>(_ store: Store, with keys: [Key]) -> Store {
    for (index, key) in keys.enumerated() { store[key] = index }
    return store
}
