import Foundation
import Larder

/// Bytes of an entry of two integers at a million of them, as the resident memory of a fresh process grows.
///
/// Each entry is also read once, so that all memory that serves hits counts.
/// The target is 40 bytes; a dictionary alone, which keeps no order, takes 33.8.
var memorySizeScenarios: [Scenario] {
    let count = 1_000_000

    func size<Store: KeyedStore<Int, Int>>(_ name: String, _ make: @escaping () -> Store) -> Variant {
        Variant(name, needsProcess: true) {
            var generator = SeededGenerator(seed: 5)
            let before = residentBytes()
            let store = make()
            for index in 0..<count { store[Int(truncatingIfNeeded: generator.next())] = index }
            generator = SeededGenerator(seed: 5)
            for index in 0..<count { precondition(store[Int(truncatingIfNeeded: generator.next())] == index) }
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
                size("NSCache") { FoundationCache<Int, Int>() },
            ]),
        Scenario(
            "hit-int-bytes", unit: "B", target: 90 / 33.8,
            [
                Variant("larder", needsProcess: true) { frontSize(count / 2) },
                size("dictionary") { LockedDictionary<Int, Int>() },
            ]),
    ]
}

/// Bytes of an entry of two integers in the memory of a cache, with its age and what else is known of it.
private func frontSize(_ count: Int) -> Double {
    let manager = attempt { try CacheManager(url: Workplace.path()) }
    let cache: Cache<Int, Int> = attempt {
        try manager.cache(
            named: "numbers", version: "1", maxAge: .days(7),
            options: CacheOptions(memory: MemoryLimits(byteLimit: nil)))
    }
    let before = residentBytes()
    for start in stride(from: 0, to: count, by: 10_000) {
        attempt { try cache.setValues((start..<start + 10_000).map { ($0, $0) }) }
    }
    precondition(cache.memory.count == count)
    for number in 0..<count { precondition(cache[number] == number) }
    return Double(residentBytes() - before) / Double(count)
}

/// The bytes the program has allocated and not freed: on Linux what the allocator says, elsewhere what is resident.
func allocatedBytes() -> Int {
    #if canImport(Glibc)
    typealias Function = @convention(c) (CInt, UnsafeMutablePointer<FILE>) -> CInt
    var text: UnsafeMutablePointer<CChar>?
    var size = 0
    guard let symbol = dlsym(nil, "malloc_info"), let file = open_memstream(&text, &size) else { return 0 }
    _ = unsafeBitCast(symbol, to: Function.self)(0, file)
    fclose(file)
    defer { free(text) }
    guard let text else { return 0 }
    // The last lines of the report are totals: of what is free in two kinds, of what is mapped, of what the heap has.
    var sizes: [String: Int] = [:]
    for line in String(cString: text).split(separator: "\n") {
        let quoted = line.split(separator: "\"", omittingEmptySubsequences: false)
        guard line.hasPrefix("<total") || line.hasPrefix("<system"), quoted.count > 3 else { continue }
        sizes[String(quoted[1])] = Int(quoted[quoted.count - 2])
    }
    return sizes["current", default: 0] + sizes["mmap", default: 0] - sizes["fast", default: 0]
        - sizes["rest", default: 0]
    #else
    var usage = rusage()
    getrusage(RUSAGE_SELF, &usage)
    return Int(usage.ru_maxrss)
    #endif
}
