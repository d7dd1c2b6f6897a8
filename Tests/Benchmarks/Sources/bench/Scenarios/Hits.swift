import Larder

/// Hits in memory through the subscript of a sub-cache, beside a locked dictionary.
var hitScenarios: [Scenario] {
    [
        hits("int", target: 1.8, maxAge: .days(7)) { Int(truncatingIfNeeded: $0) },
        hits("int-unlimited", target: nil, maxAge: .unlimited) { Int(truncatingIfNeeded: $0) },
        hits("string", target: 1.4, maxAge: .days(7)) { number in
            let digits = String(number, radix: 16)
            return "article-" + String(repeating: "0", count: 16 - digits.count) + digits
        },
    ]
}

@inline(__always)
private func hits<Key: Codable & Hashable & Sendable>(
    _ name: String, target: Double?, maxAge: MaxAge, _ make: @escaping (UInt64) -> Key
) -> Scenario {
    let count = 100_000
    func keys(_ seed: UInt64) -> [UInt64] {
        var generator = SeededGenerator(seed: 42)
        var keys = (0..<count).map { _ in generator.next() }
        var order = SeededGenerator(seed: seed)
        keys.shuffle(using: &order)
        return keys
    }
    return Scenario(
        "hit-\(name)", target: target,
        [
            Variant(
                "larder", operations: count,
                once: {
                    let manager = attempt { try CacheManager(url: Workplace.path()) }
                    let cache: Cache<Key, Int> = attempt {
                        try manager.cache(
                            named: "hits", version: "1", maxAge: maxAge,
                            options: CacheOptions(memory: MemoryLimits(byteLimit: nil)))
                    }
                    attempt { try cache.setValues(keys(1).enumerated().map { (make($1), $0) }) }
                    let asked = keys(2).map(make)
                    for key in asked { precondition(cache[key] != nil) }
                    return (cache, asked)
                },
                { cache, asked in
                    var sum = 0
                    for key in asked { sum &+= cache[key] ?? 1 }
                    consume(sum)
                }),
            Variant(
                "dictionary", operations: count,
                once: { (fill(LockedDictionary<Key, Int>(), with: keys(1).map(make)), keys(2).map(make)) },
                { store, asked in
                    var sum = 0
                    for key in asked { sum &+= store[key] ?? 1 }
                    consume(sum)
                }),
        ])
}
