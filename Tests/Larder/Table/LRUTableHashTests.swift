import Larder
import LarderTestSupport
import Testing

struct LRUTableHashTests {
    /// A key whose hashes are all equal, and which counts its comparisons: of one test, for others compare meanwhile.
    private struct CountedKey: Hashable, Sendable {
        static let comparisons = Counter()
        let number: Int

        static func == (left: Self, right: Self) -> Bool {
            comparisons.increment()
            return left.number == right.number
        }

        func hash(into hasher: inout Hasher) {}
    }

    @Test func `keys with equal hashes are compared no more than three times as often as in a dictionary`() {
        let count = 1500
        let cache = MemoryCache<CountedKey, Int>(clearsOnMemoryPressure: false)
        var dictionary: [CountedKey: Int] = [:]
        func comparisons(_ body: () -> Void) -> Int {
            let before = CountedKey.comparisons.value
            body()
            return CountedKey.comparisons.value - before
        }
        let ours = comparisons {
            for number in 0..<count { cache[CountedKey(number: number)] = number }
            for number in 0..<count { _ = cache[CountedKey(number: number)] }
        }
        let theirs = comparisons {
            for number in 0..<count { dictionary[CountedKey(number: number)] = number }
            for number in 0..<count { _ = dictionary[CountedKey(number: number)] }
        }
        #expect(Double(ours) <= 3 * Double(theirs))
        #expect(cache.count == count)
        cache.checkInvariants()
    }

    @Test func `equal hashes fill one chunk after the other, and removals leave none passed in vain`() {
        // All tags are equal, so every entry has one home, and passes all chunks that are full.
        let cache = MemoryCache<CollidingKey, Int>(clearsOnMemoryPressure: false)
        for number in 0..<700 { cache[CollidingKey(number: number)] = number }
        cache.checkInvariants()
        for number in stride(from: 0, to: 700, by: 2) { cache[CollidingKey(number: number)] = nil }
        cache.checkInvariants()
        #expect((0..<700).allSatisfy { cache[CollidingKey(number: $0)] == ($0 % 2 == 0 ? nil : $0) })
    }

    @Test func `a look-up ends though every chunk was passed by an entry`() {
        let seed = HashSeed(first: 1, second: 2)
        var table = LRUTable<Int, Int>(seed: seed)
        // The smallest table has three chunks of twelve lanes.
        let homes = (0..<3).map { home in
            Array((0...).lazy.filter { ((seed.hash($0) >> 32) * 3) >> 32 == home }.prefix(13))
        }
        var kept: [Int] = []
        for (home, count) in zip(homes, [13, 12, 12]) {
            let keys = Array(home.prefix(count))
            for key in keys { _ = table.insert(key, key, hash: seed.hash(key), limit: .max) }
            // The last one was put into the next chunk, and only it stays.
            for key in keys.dropLast() { _ = table.remove(table.locate(key, hash: seed.hash(key))) }
            kept.append(keys[count - 1])
        }
        table.checkInvariants()
        #expect(kept.allSatisfy { table.locate($0, hash: seed.hash($0)) != 0 })
        #expect(homes.allSatisfy { table.locate($0[0], hash: seed.hash($0[0])) == 0 })
    }

    @Test func `keys that want the last chunks go on in the first`() {
        let seed = HashSeed(first: 3, second: 4)
        let keys = (0..<200_000).filter { seed.hash($0) >> 56 == 0xFF }
        let cache = MemoryCache<Int, Int>(
            countLimit: 600, costLimit: .max, maxAge: .unlimited, clearsOnMemoryPressure: false, seed: seed,
            injectedClock: nil)
        for key in keys {
            cache[key] = key
            if key % 64 == 0 { cache.checkInvariants() }
        }
        #expect(cache.orderedKeys == Array(keys.suffix(600)))
        cache.checkInvariants()
    }

    @Test func `listing one cache into another meets no order of chunks`() {
        let first = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<50_000 { first[key] = key }
        let second = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in first.keys { second[key] = key }
        let probes = (0..<50_000).reduce(0) { $0 + second.probeCount($1) }
        #expect(probes < 125_000)
    }

    @Test(arguments: [1, 2, 8, 1 << 20, 1 << 32, -(1 << 40)])
    func `integers at a fixed distance spread`(distance: Int) {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for number in 0..<100_000 { cache[number &* distance] = number }
        let probes = (0..<100_000).reduce(0) { $0 + cache.probeCount($1 &* distance) }
        #expect(probes < 250_000)
    }
}
