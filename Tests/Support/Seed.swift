import Foundation

/// A generator of random numbers that repeats itself: with the environment's SEED, else with a new seed.
package struct Seeded: RandomNumberGenerator {
    /// What makes a run repeat: print it with every failure.
    package let seed: UInt64
    private var state: UInt64

    package init(_ seed: UInt64? = nil) {
        let given = ProcessInfo.processInfo.environment["SEED"].flatMap(UInt64.init)
        self.seed = seed ?? given ?? UInt64.random(in: 1 ... .max)
        state = self.seed
    }

    /// SplitMix64.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
