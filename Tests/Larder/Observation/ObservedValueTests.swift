import Larder
import LarderTestSupport
import Observation
import Testing

/// Values that views follow.
struct ObservedValueTests {
    @MainActor @Test(arguments: StoreKind.allCases)
    func `a value in memory is there at once, one on disk soon, and each change is seen`(kind: StoreKind) async throws {
        let bench = try Workbench(kind)
        let cache = try bench.words()
        try await cache.setValue(1, forKey: "a")
        let atOnce = cache.observed("a")
        #expect(atOnce.value == 1 && atOnce.key == "a")
        cache.memory.removeAll()
        let (later, absent) = (cache.observed("a"), cache.observed("b"))
        #expect(later.value == nil)
        try await Waiting.until { later.value == 1 }
        let told = Counter()
        withObservationTracking {
            _ = absent.value
        } onChange: {
            told.increment()
        }
        try await cache.setValue(2, forKey: "a")
        try await cache.setValue(3, forKey: "b")
        bench.time.advance(by: .milliseconds(100))
        try await Waiting.until { later.value == 2 && atOnce.value == 2 && absent.value == 3 }
        #expect(told.value == 1)
        try await cache.removeAll()
        bench.time.advance(by: .milliseconds(100))
        try await Waiting.until { later.value == nil && absent.value == nil }
    }

    @MainActor @Test func `where time stands still, each value comes all the same`() async throws {
        let bench = try Workbench()
        let cache = try bench.words()
        let observed = cache.observed("a", every: .seconds(60))
        var values = cache.changes(forKey: "a", every: .seconds(60)).makeAsyncIterator()
        #expect(await values.next() == .some(nil))
        for number in 1...3 {
            try await cache.setValue(number, forKey: "a")
            #expect(await values.next() == number)
            try await Waiting.until { observed.value == number }
        }
    }

    @MainActor @Test func `a hundred that are released leave nothing`() async throws {
        let bench = try Workbench()
        weak var released: Cache<String, Int>?
        do {
            let cache = try bench.words()
            released = cache
            var values = (0..<100).map { cache.observed("\($0 % 7)") }
            #expect(values.count == 100)
            values = []
        }
        try await Waiting.until { released == nil }
    }
}
