import Foundation
import Larder
import Synchronization

/// What reads of one cache cost at the 99th percentile while a hundred thousand rows of another go.
var lateReadScenarios: [Scenario] {
    [
        lateReads("read-while-reclaiming") { store in attempt { _ = try store.other.removeAll() } },
        lateReads("read-while-expiring") { store in
            store.clock.advance(by: 3600)
            store.inBackground { consume(attempt { try store.other.removeExpired() }) }
        },
        lateReads("read-while-trimming") { store in
            store.inBackground { consume(attempt { try store.other.trim(toCount: 0) }) }
        },
    ]
}

/// - Parameter disturb: Starts what goes on meanwhile, and does not wait for it.
private func lateReads(_ name: String, _ disturb: @escaping (DisturbedStore) -> Void) -> Scenario {
    Scenario(
        name, unit: "ns", target: 2,
        [
            Variant("p99 meanwhile", needsProcess: true) { DisturbedStore().lateRead(during: disturb) },
            Variant("idle median", needsProcess: true) { Result.quantile(0.5, DisturbedStore().idleReads()) },
            // What the machine does to a read by itself.
            Variant("idle p99", needsProcess: true) { Result.quantile(0.99, DisturbedStore().idleReads()) },
        ])
}

/// A store with a cache that is read and another one whose rows go.
private final class DisturbedStore: Sendable {
    let clock = Clock()
    let read: Cache<Int, Record>
    let other: Cache<Int, Record>
    private let manager: CacheManager
    private let isOver = Mutex(false)

    init() {
        var configuration = CacheManager.Configuration()
        configuration.clock = { [clock] in clock.now }
        configuration.maintenanceInterval = nil
        let store = RecordStore(entries: Self.count, configuration: configuration)
        (manager, read) = (store.manager, store.cache)
        other = attempt {
            try store.manager.cache(
                named: "other", version: "1", maxAge: .seconds(60), options: CacheOptions(memory: .disabled))
        }
        for start in stride(from: 0, to: Self.count, by: 10_000) {
            attempt { [other] in try other.setValues((start..<start + 10_000).map { ($0, Record($0)) }) }
        }
        // So that the copying of the log, after so much was written, is over.
        attempt { [manager] in try manager.maintain() }
    }

    func idleReads() -> [Double] {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<20_000 { consume(readOne(&generator)) }
        return (0..<50_000).map { _ in readOne(&generator) }
    }

    /// The 99th percentile of what a read takes until all rows are gone.
    func lateRead(during disturb: (DisturbedStore) -> Void) -> Double {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<20_000 { consume(readOne(&generator)) }
        disturb(self)
        var times: [Double] = []
        // The rows that `removeAll` leaves are reclaimed by nobody we could ask: so many reads take about as long.
        while times.count < 500_000, !isOver.withLock(\.self) { times.append(readOne(&generator)) }
        return Result.quantile(0.99, times)
    }

    /// Runs it on a thread of its own; the reads end with it.
    func inBackground(_ body: @escaping @Sendable () -> Void) {
        Thread.detachNewThread { [self] in
            body()
            isOver.withLock { $0 = true }
        }
    }

    private func readOne(_ generator: inout SeededGenerator) -> Double {
        let key = Int.random(in: 0..<Self.count, using: &generator)
        return nanoseconds(per: 1) { consume(read[key]) }
    }

    private static let count = 100_000
}
