import Larder
import LarderTestSupport
import Testing

/// The naive model: an array in the order of use.
private struct Model {
    var entries: [(key: Int, value: Int, cost: Int)] = []
    var countLimit = Int.max
    var costLimit = Int.max

    var totalCost: Int { entries.reduce(0) { $0 + $1.cost } }

    mutating func value(forKey key: Int) -> Int? {
        guard let place = entries.firstIndex(where: { $0.key == key }) else { return nil }
        entries.append(entries.remove(at: place))
        return entries.last?.value
    }

    mutating func setValue(_ value: Int, forKey key: Int, cost: Int) {
        removeValue(forKey: key)
        if cost > costLimit || countLimit == 0 { return }
        entries.append((key, value, cost))
        enforce()
    }

    @discardableResult
    mutating func removeValue(forKey key: Int) -> Int? {
        entries.firstIndex { $0.key == key }.map { entries.remove(at: $0).value }
    }

    mutating func enforce() {
        while entries.count > countLimit || totalCost > costLimit { entries.removeFirst() }
    }
}

struct MemoryCacheModelTests {
    @Test(arguments: [
        (UInt64(1), LongTests.areEnabled ? 1_000_000 : 100_000), (2, 20_000), (3, 20_000), (0xFFFF_FFFF, 20_000),
    ])
    func `the cache equals a naive model after every one of many random steps`(
        seed: UInt64, steps: Int
    ) {
        run(seed: seed, steps: steps) { $0 }
    }

    @Test func `the model holds for keys through Hasher`() {
        run(seed: 4, steps: 20_000) { HashedKey(number: $0) }
    }

    @Test func `the model holds for keys whose hashes are all equal`() {
        run(seed: 5, steps: 20_000) { CollidingKey(number: $0) }
    }

    private struct HashedKey: Hashable, Sendable {
        let number: Int
    }

    private func run<Key: Hashable & Sendable>(seed: UInt64, steps: Int, _ key: (Int) -> Key) {
        var random = Seeded(seed)
        let cache = MemoryCache<Key, Int>(clearsOnMemoryPressure: false)
        var model = Model()
        for step in 0..<steps {
            let number = Int.random(in: 0..<48, using: &random)
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<35:
                guard cache.value(forKey: key(number)) == model.value(forKey: number) else {
                    Issue.record("seed \(seed), step \(step): another value of \(number)")
                    return
                }
            case 35..<75:
                let cost = Int.random(in: -1...12, using: &random)
                cache.setValue(step, forKey: key(number), cost: cost)
                model.setValue(step, forKey: number, cost: max(0, cost))
            case 75..<90:
                guard cache.removeValue(forKey: key(number)) == model.removeValue(forKey: number) else {
                    Issue.record("seed \(seed), step \(step): another value removed of \(number)")
                    return
                }
            case 90..<93:
                model.countLimit = Bool.random(using: &random) ? .max : number
                cache.countLimit = model.countLimit
                model.enforce()
            case 93..<96:
                model.costLimit = Bool.random(using: &random) ? .max : number * 3
                cache.costLimit = model.costLimit
                model.enforce()
            case 96..<98:
                cache.trim(toCount: number)
                model.entries.removeFirst(max(0, model.entries.count - number))
            case 98:
                cache.trim(toCost: number)
                while model.totalCost > number { model.entries.removeFirst() }
            default:
                if number == 0 {
                    cache.removeAll()
                    model.entries = []
                } else {
                    let removed = cache.removeAll { _, value in value % 7 == number % 7 }
                    let before = model.entries.count
                    model.entries.removeAll { $0.value % 7 == number % 7 }
                    guard removed == before - model.entries.count else {
                        Issue.record("seed \(seed), step \(step): removed \(removed)")
                        return
                    }
                }
            }
            let isSame =
                cache.count == model.entries.count && cache.totalCost == model.totalCost
                && (step % 16 != 0 || cache.orderedKeys == model.entries.map { key($0.key) })
                && (step % 16 != 0 || cache.orderedValues == model.entries.map(\.value))
            guard isSame else {
                Issue.record("seed \(seed), step \(step): \(cache.orderedValues) is not \(model.entries)")
                return
            }
            if step % 64 == 0 { cache.checkInvariants() }
        }
        cache.checkInvariants()
    }
}
