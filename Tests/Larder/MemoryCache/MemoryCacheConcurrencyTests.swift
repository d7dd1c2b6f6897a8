import Foundation
import Larder
import LarderTestSupport
import Testing

struct MemoryCacheConcurrencyTests {
    @Test func `everything at once from many threads`() {
        let cache = MemoryCache<Int, String>(countLimit: 500, costLimit: 5000, clearsOnMemoryPressure: false)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            var random = Seeded(UInt64(thread))
            for step in 0..<4_000 {
                let key = Int.random(in: 0..<1000, using: &random)
                switch Int.random(in: 0..<40, using: &random) {
                case 0..<14: _ = cache[key]
                case 14..<26: cache.setValue("\(key)", forKey: key, cost: key % 20)
                case 26..<29: cache[key] = nil
                case 29: cache.update(key) { $0 = $0 ?? "\(key)" }
                case 30: cache.setValues((0..<5).map { (key &+ $0, "\(key &+ $0)") })
                case 31: #expect(cache.values(forKeys: [key, key + 1]).allSatisfy { "\($0.key)" == $0.value })
                case 32: cache.removeValues(forKeys: [key, key + 1])
                case 33: cache.countLimit = 400 + key % 200
                case 34: cache.costLimit = 4000 + key
                case 35: if step % 8 == 0 { for (key, value) in cache { #expect("\(key)" == value) } }
                case 36: cache.trim(toCount: 300)
                case 37: cache.removeAll { key, _ in key % 17 == thread }
                case 38: if step % 8 == 0 { #expect(Set(cache.orderedKeys).count <= 1000) }
                default:
                    if step % 64 == 0 { cache.removeAll() }
                    if step % 16 == 0 { cache.handleMemoryPressure(.warning) }
                    #expect(cache.totalCost <= 5000)
                }
                if let value = cache[key] { #expect(value == "\(key)") }
            }
        }
        cache.checkInvariants()
        #expect(cache.watchedKeyCount == 0)
    }

    @Test func `the limits hold at every moment another thread looks`() throws {
        let cache = MemoryCache<Int, Int>(countLimit: 100, costLimit: 300, clearsOnMemoryPressure: false)
        let isDone = Locked(false)
        let begins = DispatchSemaphore(value: 0)
        // A thread of its own: two iterations of one loop may come one after the other.
        let watcher = SideThread {
            begins.signal()
            while !isDone.value {
                let (count, cost) = (cache.count, cache.totalCost)
                if count > 100 || cost > 300 {
                    Issue.record("count \(count), cost \(cost)")
                    break
                }
            }
        }
        begins.wait()
        var random = Seeded(3)
        for step in 0..<50_000 {
            cache.setValue(
                step, forKey: Int.random(in: 0..<200, using: &random),
                cost: Int.random(in: 0..<50, using: &random))
        }
        isDone.change { $0 = true }
        try watcher.value()
    }

    @Test func `100,000 evictions use the same few nodes again`() {
        let cache = MemoryCache<Int, Int>(countLimit: 10, clearsOnMemoryPressure: false)
        for key in 0..<100_010 { cache[key] = key }
        #expect(cache.count == 10 && cache.capacity <= 15)
    }
}
