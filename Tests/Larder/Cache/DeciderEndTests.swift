import Foundation
import Larder
import LarderTestSupport
import Testing

/// How a decider ends while its pass is under way.
struct DeciderEndTests {
    private let bench: Workbench

    init() throws {
        bench = try Workbench()
    }

    @Test(arguments: [false, true])
    func `dropping the task from its own closure ends the pass there, and all later ones`(readsValues: Bool) throws {
        let cache = try bench.numbers(.days(1))
        for number in 1...2000 { cache[number] = "\(number)" }
        let held = Locked<EvictionTask?>(nil)
        let calls = Counter()
        @Sendable func decide() -> Bool {
            if calls.increment() == 3 { held.change { $0 = nil } }
            return true
        }
        held.change {
            $0 =
                readsValues
                ? cache.evict(every: .seconds(1), where: { _ in decide() })
                : cache.evict(every: .seconds(1), whereMetadata: { _, _ in decide() })
        }
        bench.time.advance(by: .seconds(1))
        #expect(calls.value == 3)
        // What it had picked before is gone.
        #expect(try cache.count == 1997)
        #expect(Array(cache.keys.prefix(1)) == [4])
        bench.time.advance(by: .seconds(60))
        #expect(calls.value == 3)
        #expect(try cache.count == 1997)
    }

    @Test func `a cache that is superseded during a pass ends it, without a failure`() throws {
        let cache = try bench.numbers(.days(1))
        for number in 1...2000 { cache[number] = "\(number)" }
        let newer = Locked<Cache<Int, String>?>(nil)
        let calls = Counter()
        let task = cache.evict(every: .seconds(1)) { [bench] _ in
            if calls.increment() == 5 {
                do {
                    let cache = try bench.numbers(.days(1), version: "2")
                    newer.change { $0 = cache }
                } catch {
                    Issue.record(error)
                }
            }
            return true
        }
        bench.time.advance(by: .seconds(1))
        #expect(calls.value < 2000)
        let count = calls.value
        let cache2 = try #require(newer.change { $0 })
        cache2[1] = "new"
        bench.time.advance(by: .seconds(60))
        #expect(calls.value == count)
        #expect(cache2[1] == "new")
        #expect(cache.statistics.failures == 0)
        task.cancel()
    }
}
