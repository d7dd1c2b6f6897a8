import Dispatch
import Larder

/// Hits in memory through the subscript of a cache, next to a locked dictionary, with new random keys for each sample.
var hitScenarios: [Scenario] {
    func integers(
        _ name: String, target: Double?, _ maxAge: MaxAge = .days(7), _ order: HitOrder = .uniform,
        count: Int = 100_000
    ) -> Scenario {
        hits(name, target: target, maxAge, order, count: count) { Int(truncatingIfNeeded: $0) }
    }
    func text(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return "article-" + String(repeating: "0", count: 16 - digits.count) + digits
    }
    return [
        integers("int", target: nil),
        integers("int-200000", target: nil, count: 200_000),
        integers("int-zipf", target: nil, .days(7), .zipf),
        integers("int-in-order", target: nil, .days(7), .stored),
        integers("int-two-threads", target: 1.7, .days(7), .twoThreads),
        integers("int-unlimited", target: nil, .unlimited),
        hits("string", target: nil, .days(7), .uniform, count: 100_000, text),
        hits("string-in-order", target: 0.7, .days(7), .stored, count: 100_000, text),
    ]
}

/// The order in which keys are asked for.
private enum HitOrder {
    case uniform, zipf
    /// That in which they were stored.
    case stored
    /// At random, by two threads.
    case twoThreads
}

@inline(__always)
private func hits<Key: Codable & Hashable & Sendable>(
    _ name: String, target: Double?, _ maxAge: MaxAge, _ order: HitOrder, count: Int,
    _ make: @escaping (UInt64) -> Key
) -> Scenario {
    var generator = SeededGenerator(seed: 42)
    let numbers = (0..<count).map { _ in generator.next() }
    let draws = Draws(of: count, order == .zipf ? .zipf : .uniform)
    func asked() -> [[Key]] {
        switch order {
        case .uniform, .zipf: [draws(numbers).map(make)]
        case .stored: [numbers.map(make)]
        case .twoThreads: [draws(numbers).map(make), draws(numbers).map(make)]
        }
    }
    @inline(__always)
    func read(_ asked: [[Key]], _ value: @Sendable (Key) -> Int?) {
        @Sendable func read(_ thread: Int) {
            var sum = 0
            for key in asked[thread] { sum &+= value(key) ?? 1 }
            consume(sum)
        }
        if asked.count == 1 { read(0) } else { DispatchQueue.concurrentPerform(iterations: 2) { read($0) } }
    }
    let cache = Lazily {
        let manager = attempt { try CacheManager(url: Workplace.path()) }
        let cache: Cache<Key, Int> = attempt {
            try manager.cache(
                named: "hits", version: "1", maxAge: maxAge,
                options: CacheOptions(memory: MemoryLimits(byteLimit: nil)))
        }
        attempt { try cache.setValues(numbers.enumerated().map { (make($1), $0) }) }
        for number in numbers { precondition(cache[make(number)] != nil) }
        return cache
    }
    let dictionary = Lazily { fill(LockedDictionary<Key, Int>(), with: numbers.map(make)) }
    return Scenario(
        "hit-\(name)", target: target,
        [
            Variant(
                "larder", operations: count,
                eachTime: { (cache.value, asked()) },
                { cache, asked in read(asked) { cache[$0] } }),
            Variant(
                "dictionary", operations: count,
                eachTime: { (dictionary.value, asked()) },
                { store, asked in read(asked) { store[$0] } }),
        ])
}
