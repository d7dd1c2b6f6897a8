import Foundation
import Larder
import LarderTestSupport
import Testing

struct MemoryCacheIteratorTests {
    private func filled(_ count: Int) -> MemoryCache<Int, Int> {
        let cache = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
        for key in 0..<count { cache[key] = key * 10 }
        return cache
    }

    @Test func `for-in, map, filter, compactMap, forEach and by hand`() {
        let cache = filled(3)
        var seen: [Int] = []
        for (key, value) in cache where value >= 0 { seen.append(key) }
        #expect(seen == [0, 1, 2])
        #expect(cache.map(\.value) == [0, 10, 20])
        #expect(cache.filter { $0.key > 0 }.map(\.key) == [1, 2])
        #expect(cache.compactMap { $0.key == 1 ? $0.value : nil } == [10])
        cache.forEach { seen.append($0.value) }
        #expect(seen == [0, 1, 2, 0, 10, 20])
        var iterator: MemoryCacheGenerator<Int, Int> = cache.makeIterator()
        while let (key, value) = iterator.next() { #expect(value == key * 10) }
        for _ in 0..<3 { #expect(iterator.next() == nil) }
    }

    @Test func `an iterator at its end gives nil forever, whatever is added`() {
        let cache = filled(1)
        var iterator = cache.makeIterator()
        #expect(iterator.next()?.key == 0)
        #expect(iterator.next() == nil)
        cache[5] = 5
        #expect(iterator.next() == nil)
    }

    @Test func `two nested loops over three make nine pairs`() {
        let cache = filled(3)
        var pairs: Set<[Int]> = []
        for (first, _) in cache { for (second, _) in cache { pairs.insert([first, second]) } }
        #expect(pairs.count == 9)
    }

    @Test func `each of two threads sees a complete pass`() {
        let cache = filled(5000)
        DispatchQueue.concurrentPerform(iterations: 2) { _ in
            #expect(cache.map(\.key).sorted() == Array(0..<5000))
        }
    }

    @Test func `a pass changes no recency`() {
        let cache = filled(10)
        _ = cache[3]
        let order = cache.orderedKeys
        for _ in cache {}
        #expect(cache.orderedKeys == order)
    }

    @Test func `the order is that of use at the start, whatever is read meanwhile`() {
        let cache = filled(2000)
        _ = cache[5]
        let order = cache.orderedKeys
        var seen: [Int] = []
        for (key, _) in cache {
            seen.append(key)
            _ = cache[(key &* 7) % 2000]
        }
        #expect(seen == order)
    }

    @Test func `removed entries are skipped, replaced ones have their new value, and added ones are left out`() {
        let cache = filled(10)
        var seen: [Int] = []
        for (key, value) in cache {
            seen.append(value)
            if key == 0 {
                cache[3] = nil
                cache[4] = nil
                cache[4] = 444
                cache[5] = 555
                for new in 100..<5000 { cache[new] = new }
            }
        }
        #expect(seen == [0, 10, 20, 444, 555, 60, 70, 80, 90])
        cache.checkInvariants()
    }

    @Test func `an iteration ends when everything is removed`() {
        let cache = filled(10)
        var iterator = cache.makeIterator()
        _ = iterator.next()
        cache.removeAll()
        for key in 10..<20 { cache[key] = -1 }
        #expect(iterator.next() == nil)
    }

    @Test func `two iterators and their copies go each its own way`() {
        let cache = filled(4)
        var first = cache.makeIterator()
        _ = first.next()
        var copy = first
        #expect(first.next()?.key == 1 && first.next()?.key == 2)
        #expect(copy.next()?.key == 1)
    }

    @Test func `the order is that of the start also when others use and remove in the meantime`() throws {
        let cache = filled(50_000)
        let isDone = Locked(false)
        let begins = DispatchSemaphore(value: 0)
        // A thread of its own: two iterations of one loop may come one after the other.
        let writer = SideThread {
            begins.signal()
            var random = Seeded(8)
            while !isDone.value {
                let key = Int.random(in: 0..<50_000, using: &random)
                if key % 2 == 0 { _ = cache[key] } else { cache[key] = cache[key] == nil ? 1 : nil }
            }
        }
        begins.wait()
        for _ in 0..<20 {
            let keys = cache.map(\.key)
            // Even keys are only read, so each is there; odd ones come and go.
            #expect(Set(keys).count == keys.count)
            #expect(keys.count { $0 % 2 == 0 } == 25_000)
        }
        isDone.change { $0 = true }
        try writer.value()
        cache.checkInvariants()
    }
}

/// The order of the log, against a naive model.
struct LRUTableOrderTests {
    @Test(arguments: UInt64(0)..<6)
    func `the table has the order of use`(seed: UInt64) {
        var random = Seeded(seed)
        let hashSeed = HashSeed(first: seed, second: 7)
        var table = LRUTable<Int, Int>(seed: hashSeed)
        var model: [Int] = []
        func step() {
            let key = Int.random(in: 0..<600, using: &random)
            let hash = hashSeed.hash(key)
            let found = table.locate(key, hash: hash)
            let action = Int.random(in: 0..<6, using: &random)
            if found == 0 {
                if action == 3 && table.count > 0 {
                    _ = table.replaceLeastRecent(with: key, 0, hash: hash)
                    model.removeFirst()
                } else {
                    _ = table.insert(key, 0, hash: hash, limit: .max)
                }
                model.append(key)
            } else if action == 5 {
                _ = table.exchange(1, at: found)
            } else {
                model.removeAll { $0 == key }
                if action == 2 { _ = table.remove(found) } else { table.promote(found) }
                if action != 2 { model.append(key) }
            }
        }
        for round in 0..<8 {
            for _ in 0..<2000 { step() }
            if round == 4 { _ = table.shrink(to: 0) }
            table.checkInvariants()
            let order = table.order
            let keys = model
            #expect(order.map { table.key(at: $0) } == keys)
            #expect(table.leastRecent == order.first ?? 0 && table.mostRecent == order.last ?? 0)
            for (older, newer) in zip(order, order.dropFirst()) { #expect(table.older(than: newer) == older) }
        }
    }
}
