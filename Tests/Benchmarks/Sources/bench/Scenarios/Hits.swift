import Larder

/// Hits in memory through the subscript of a cache, next to a locked dictionary, with new random keys for each sample.
var hitScenarios: [Scenario] {
    [
        hits("int", target: 1.8, maxAge: .days(7)) { Int(truncatingIfNeeded: $0) },
        hits("int-zipf", target: 1.8, maxAge: .days(7), .zipf) { Int(truncatingIfNeeded: $0) },
        hits("int-unlimited", target: nil, maxAge: .unlimited) { Int(truncatingIfNeeded: $0) },
        hits("string", target: 1.4, maxAge: .days(7)) { number in
            let digits = String(number, radix: 16)
            return "article-" + String(repeating: "0", count: 16 - digits.count) + digits
        },
    ]
}

@inline(__always)
private func hits<Key: Codable & Hashable & Sendable>(
    _ name: String, target: Double?, maxAge: MaxAge, _ distribution: Draws.Distribution = .uniform,
    _ make: @escaping (UInt64) -> Key
) -> Scenario {
    let count = 100_000
    var generator = SeededGenerator(seed: 42)
    let numbers = (0..<count).map { _ in generator.next() }
    let draws = Draws(of: count, distribution)
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
                eachTime: { (cache.value, draws(numbers).map(make)) },
                { cache, asked in
                    var sum = 0
                    for key in asked { sum &+= cache[key] ?? 1 }
                    consume(sum)
                }),
            Variant(
                "dictionary", operations: count,
                eachTime: { (dictionary.value, draws(numbers).map(make)) },
                { store, asked in
                    var sum = 0
                    for key in asked { sum &+= store[key] ?? 1 }
                    consume(sum)
                }),
        ])
}
