import Foundation
import Larder
import LarderTestSupport
import Testing

struct MemoryCacheByteTests {
    /// The bytes of an entry of two integers.
    private static let entry = 39

    @Test func `without a byte limit the bytes are counted all the same`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        #expect(cache.byteLimit == .max && cache.totalBytes == 0)
        for number in 0..<100 { cache[number] = number }
        #expect(cache.totalBytes == 100 * Self.entry)
        cache[5] = nil
        #expect(cache.totalBytes == 99 * Self.entry)
        cache.removeAll()
        #expect(cache.totalBytes == 0)
    }

    @Test func `a byte limit holds, least recently used first`() {
        let cache = MemoryCache<Int, Int>(byteLimit: 10 * Self.entry, clearsOnMemoryPressure: false)
        for number in 0..<25 { cache[number] = number }
        #expect(cache.orderedKeys == Array(15..<25))
        cache.byteLimit = 4 * Self.entry - 1
        #expect(cache.orderedKeys == [22, 23, 24] && cache.totalBytes == 3 * Self.entry)
        cache.byteLimit = .min
        #expect(cache.byteLimit == 0 && cache.isEmpty)
        cache[1] = 1
        #expect(cache.isEmpty)
        cache.checkInvariants()
    }

    @Test func `a cost counts as bytes, and so does a long key`() {
        let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
        cache["short"] = 1
        let inline = cache.totalBytes
        cache.setValue(1, forKey: "other", cost: 1000)
        // In steps of 16, with the cost itself and the number of bytes.
        #expect(cache.totalBytes == 2 * inline + 1024)
        cache["other"] = 1
        #expect(cache.totalBytes == 2 * inline)
        cache[String(repeating: "k", count: 1000)] = 1
        #expect(cache.totalBytes == 3 * inline + 1072)
        cache.update("short") { $0 = 2 }
        #expect(cache.totalBytes == 3 * inline + 1072)
        cache.checkInvariants()
    }

    @Test func `a value larger than the whole limit evicts nothing, and removes what the key held`() {
        let cache = MemoryCache<Int, Int>(byteLimit: 10_000, clearsOnMemoryPressure: false)
        for number in 0..<5 { cache[number] = number }
        cache.setValue(1, forKey: 3, cost: 10_000)
        #expect(cache.orderedKeys == [0, 1, 2, 4])
        cache.setValue(1, forKey: 3, cost: 9000)
        #expect(cache[3] == 1 && cache.totalBytes <= 10_000)
        cache.checkInvariants()
    }

    @Test(arguments: [MemoryPressure.warning, .critical])
    func `memory pressure halves the bytes too`(level: MemoryPressure) {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for number in 0..<10 { cache.setValue(number, forKey: number, cost: 10) }
        // One that takes more than all others, and is used last but one.
        cache.setValue(10, forKey: 10, cost: 100_000)
        cache[11] = 11
        let before = cache.totalBytes
        cache.handleMemoryPressure(level)
        #expect(cache.totalBytes <= before / 2)
        #expect(cache.orderedKeys == (level == .warning ? [11] : []))
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func `a cache of changing sizes keeps its limit, its order and its room`(seed: UInt64) {
        var random = Seeded(seed)
        let limit = 1 << 20
        let cache = MemoryCache<Int, Int>(byteLimit: limit, clearsOnMemoryPressure: false)
        var model: [(key: Int, cost: Int)] = []
        var most = 0
        for phase in 0..<6 {
            // Phases of small entries, of which there are many, and of large ones.
            let costs = phase.isMultiple(of: 2) ? 0...0 : 4000...9000
            for _ in 0..<(phase.isMultiple(of: 2) ? 40_000 : 2000) {
                let (key, cost) = (Int.random(in: 0..<1_000_000, using: &random), Int.random(in: costs, using: &random))
                cache.setValue(key, forKey: key, cost: cost)
                model.append((key, cost))
                most = max(most, cache.count)
            }
            // Room that stands empty counts nowhere, so there is little.
            #expect((cache.capacity - cache.count) * Self.entry <= limit / 16 + 1024 * Self.entry, "phase \(phase)")
            #expect(cache.totalBytes <= limit && cache.totalBytes > limit - 20_000, "phase \(phase)")
            cache.checkInvariants()
        }
        #expect(most > 20_000 && cache.count < 400)
        // The newest of each key, most recent last.
        var seen: Set<Int> = []
        let newest = model.reversed().filter { seen.insert($0.key).inserted }.prefix(cache.count).map(\.key).reversed()
        #expect(cache.orderedKeys == Array(newest))
    }

    @Test(arguments: [false, true])
    func `a table that got smaller finds every key, whatever its type`(isAged: Bool) {
        let cache = MemoryCache<String, String>(
            maxAge: isAged ? .hours(1) : .unlimited, clearsOnMemoryPressure: false)
        for number in 0..<20_000 { cache.setValue("\(number)", forKey: "key \(number)", cost: number % 7) }
        let before = cache.capacity
        cache.trim(toCount: 5000)
        #expect(cache.capacity < before / 2)
        cache.checkInvariants()
        #expect(cache.totalCost == (15_000..<20_000).reduce(0) { $0 + $1 % 7 })
        #expect((15_000..<20_000).allSatisfy { cache["key \($0)"] == "\($0)" })
        for number in 20_000..<30_000 { cache["key \(number)"] = "\(number)" }
        #expect((15_000..<30_000).allSatisfy { cache["key \($0)"] == "\($0)" })
        cache.checkInvariants()
    }

    @Test func `a pass keeps its place when much is removed meanwhile`() {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for number in 0..<20_000 { cache[number] = number }
        var pass = cache.makeIterator()
        #expect(pass.next()?.key == 0)
        cache.trim(toCount: 100)
        #expect(pass.next()?.key == 19_900)
        #expect(Array(IteratorSequence(pass)).map(\.key) == Array(19_901..<20_000))
        cache.checkInvariants()
    }
}
