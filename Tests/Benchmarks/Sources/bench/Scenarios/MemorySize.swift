import Foundation
import Larder

/// Bytes of an entry of two integers at a million of them, as the resident memory of the process grows.
///
/// The target is 40 bytes; a dictionary alone, which keeps no order, takes 33.8.
var memorySizeScenarios: [Scenario] {
    let count = 1_000_000

    func size<Store: KeyedStore<Int, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        Variant(name) {
            var generator = SeededGenerator(seed: 5)
            let before = residentBytes()
            let store = make()
            for index in 0..<count { store[Int(truncatingIfNeeded: generator.next())] = index }
            let after = residentBytes()
            withExtendedLifetime(store) {}
            return Double(after - before) / Double(count)
        }
    }

    return [
        Scenario(
            "memory-int-bytes-limited", unit: "B", target: 40 / 33.8,
            [
                size("larder") { MemoryCache<Int, Int>(countLimit: count, clearsOnMemoryPressure: false) },
                size("dictionary") { LockedDictionary<Int, Int>() },
            ]),
        Scenario(
            "memory-int-bytes-unlimited", unit: "B", target: 40 / 33.8,
            [
                size("larder") { MemoryCache<Int, Int>(clearsOnMemoryPressure: false) },
                size("dictionary") { LockedDictionary<Int, Int>() },
                size("nodes") { NodeLRU<Int, Int>() },
            ]),
    ]
}

/// The resident memory of the process.
func residentBytes() -> Int {
    #if os(Linux)
    guard let text = FileManager.default.contents(atPath: "/proc/self/statm") else { return 0 }
    let fields = String(decoding: text, as: UTF8.self).split(separator: " ")
    return (Int(fields[1]) ?? 0) * 4096
    #else
    var usage = rusage()
    getrusage(RUSAGE_SELF, &usage)
    return Int(usage.ru_maxrss)
    #endif
}
