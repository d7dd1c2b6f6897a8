import Dispatch
import Larder
import Testing

struct MemoryCacheUpdateTests {
    private let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)

    private struct Failure: Error {}

    @Test func `an update reads, changes and gives its result`() {
        let result = cache.update("k") { value in
            value = (value ?? 0) + 1
            return "made"
        }
        #expect(result == "made")
        cache.update("k") { $0? += 1 }
        #expect(cache["k"] == 2)
        cache.update("k") { $0 = nil }
        #expect(cache.isEmpty)
        #expect(cache.watchedKeyCount == 0)
        cache.checkInvariants()
    }

    @Test func `an update keeps the cost`() {
        cache.setValue(1, forKey: "k", cost: 5)
        cache.update("k") { $0 = 2 }
        #expect(cache.totalCost == 5)
        cache.update("k") { $0 = nil }
        #expect(cache.totalCost == 0)
    }

    @Test func `an update that throws changes nothing`() {
        cache["k"] = 1
        #expect(throws: Failure.self) {
            try cache.update("k") { value in
                value = 2
                throw Failure()
            }
        }
        #expect(cache["k"] == 1 && cache.watchedKeyCount == 0)
    }

    @Test func `no update of 100 tasks is lost`() async {
        let cache = cache
        await withTaskGroup { group in
            for _ in 0..<100 {
                group.addTask { for _ in 0..<100 { cache.update("k") { $0 = ($0 ?? 0) + 1 } } }
            }
        }
        #expect(cache["k"] == 10_000 && cache.watchedKeyCount == 0)
        cache.checkInvariants()
    }

    @Test func `the body may use the cache, other keys and other updates included`() {
        cache["other"] = 1
        cache.update("k") { value in
            cache["third"] = cache["other"]
            cache.update("other") { $0 = 5 }
            value = cache.count
        }
        #expect(cache["k"] == 2 && cache["other"] == 5 && cache["third"] == 1)
    }

    @Test func `a plain write or removal meanwhile is the later one`() {
        cache["k"] = 1
        cache.update("k") { value in
            cache["k"] = 10
            value = 2
        }
        #expect(cache["k"] == 10)
        cache.update("k") { value in
            cache["k"] = nil
            value = 2
        }
        #expect(cache["k"] == nil)
        cache.update("k") { value in
            cache.removeAll()
            value = 2
        }
        #expect(cache["k"] == nil)
        cache.update("k") { $0 = 3 }
        #expect(cache["k"] == 3, "the next update is a new one")
    }

    @Test func `an entry evicted meanwhile comes back with its update`() {
        let cache = MemoryCache<String, Int>(countLimit: 1, clearsOnMemoryPressure: false)
        cache["k"] = 1
        cache.update("k") { value in
            cache["other"] = 1
            value? += 1
        }
        #expect(cache["k"] == 2 && cache.count == 1)
    }

    @Test func `an update of the key from inside its update traps with a sentence`() async {
        await #expect(processExitsWith: .failure) {
            let cache = MemoryCache<String, Int>(clearsOnMemoryPressure: false)
            cache.update("k") { _ in cache.update("k") { $0 = 1 } }
        }
    }
}
