import Larder

/// Integers, hashed by two multiplications.
var memoryIntegerScenarios: [Scenario] {
    MemoryOperations(name: "memory-int") { Int(truncatingIfNeeded: $0) }
        .scenarios(setNew: 0.6, replace: 0.8, miss: 0.65)
}

/// Strings of 24 characters.
var memoryStringScenarios: [Scenario] {
    MemoryOperations(name: "memory-string") { number in
        let digits = String(number, radix: 16)
        return "article-" + String(repeating: "0", count: 16 - digits.count) + digits
    }
    .scenarios(setNew: 0.35, replace: 0.8, miss: 0.8)
}

/// A key that costs what an integer costs but goes through `Hasher`.
struct HashedKey: Hashable, Sendable {
    let number: Int
}

/// Keys through `Hasher`.
var memoryHasherScenarios: [Scenario] {
    MemoryOperations(name: "memory-hasher") { HashedKey(number: Int(truncatingIfNeeded: $0)) }
        .scenarios(setNew: 0.6, replace: 1.1, miss: 1.2)
}
