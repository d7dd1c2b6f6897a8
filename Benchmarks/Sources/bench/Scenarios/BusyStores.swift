import Foundation
import Larder
import Synchronization

/// What callers wait for in a store that is busy: limits that hold, counts of rows, rows that are reclaimed, and streams.
var busyScenarios: [Scenario] { limitedWriters + [limitedProcesses, setsAfterPurge, observedCaches] }

private let manyRows = Options.isSmall ? 100_000 : 1_000_000

// MARK: A limit

/// Two threads that set 5,000 new keys a call and one that sets single keys, in a full cache of 20,000 rows.
private var limitedWriters: [Scenario] {
    func variant(_ name: String, _ limit: Int?, _ result: @escaping (BusyWriters) -> Double) -> Variant {
        Variant(name, needsProcess: true) { result(BusyWriters(limit: limit)) }
    }
    return [
        Scenario(
            "busy-limit-writers", target: 1.5,
            [
                variant("limit that holds", 20_000) { $0.nanosecondsPerRow },
                variant("no limit", nil) { $0.nanosecondsPerRow },
            ]),
        Scenario(
            "busy-limit-longest-call", unit: "us",
            [
                variant("limit that holds", 20_000) { $0.longestCall },
                variant("no limit", nil) { $0.longestCall },
            ]),
    ]
}

private struct BusyWriters {
    private(set) var nanosecondsPerRow = 0.0
    /// In microseconds.
    private(set) var longestCall = 0.0

    init(limit: Int?) {
        let store = RecordStore(entries: 20_000, disk: DiskLimits(countLimit: limit))
        let next = Mutex(1_000_000)
        let longestOfAll = Mutex(0.0)
        let calls = 20
        let cache = store.cache
        @Sendable func note(_ microseconds: Double) { longestOfAll.withLock { $0 = max($0, microseconds) } }
        nanosecondsPerRow = nanoseconds(per: 2 * calls * 5000) {
            let bulk = DispatchGroup(), single = DispatchGroup()
            let isOver = Mutex(false)
            for _ in 0..<2 {
                bulk.enter()
                Thread.detachNewThread {
                    for _ in 0..<calls {
                        let start = next.withLock { next in
                            defer { next += 5000 }
                            return next
                        }
                        let values = (start..<start + 5000).map { ($0, Record($0)) }
                        note(longest(1) { _ in attempt { try cache.setValues(values) } })
                    }
                    bulk.leave()
                }
            }
            single.enter()
            Thread.detachNewThread {
                var key = -1
                while !isOver.withLock(\.self) {
                    note(longest(1) { _ in attempt { try cache.setValue(Record(key), forKey: key) } })
                    key -= 1
                }
                single.leave()
            }
            bulk.wait()
            isOver.withLock { $0 = true }
            single.wait()
        }
        longestCall = longestOfAll.withLock(\.self)
    }
}

// MARK: Counts

/// Two processes that replace values in a cache of many rows: after each commit of the other one, a limit needs a count.
private var limitedProcesses: Scenario {
    func variant(_ name: String, _ limit: Int?) -> Variant {
        Variant(name, needsProcess: true) {
            let store = RecordStore(entries: manyRows, disk: DiskLimits(countLimit: limit))
            attempt { try store.manager.maintain() }
            let writer = Writer("store", store.manager.url?.path ?? "")
            let rounds = 10
            return nanoseconds(per: 2 * rounds * Writer.count) {
                var key = 0
                for _ in 0..<rounds {
                    writer.start()
                    for _ in 0..<Writer.count {
                        attempt { try store.cache.setValue(Record(key, edition: 1), forKey: key) }
                        key += 2
                    }
                    writer.wait()
                }
            }
        }
    }
    return Scenario(
        "busy-limit-two-processes", target: 1.2,
        [variant("limit that holds", 2 * manyRows), variant("no limit", nil)])
}

// MARK: Reclaiming

/// The longest that one set takes in the two seconds after the purge of many rows, in another cache of the store.
private var setsAfterPurge: Scenario {
    func variant(_ name: String, purges: Bool) -> Variant {
        Variant(name, needsProcess: true) {
            let store = RecordStore(entries: manyRows)
            attempt { try store.manager.maintain() }
            let other: Cache<Int, Record> = attempt {
                try store.manager.cache(
                    named: "other", version: "1", maxAge: .days(7), options: CacheOptions(memory: .disabled))
            }
            attempt { try other.setValue(Record(0), forKey: 0) }
            if purges {
                let _: Cache<Int, Record> = attempt {
                    try store.manager.cache(named: "records", version: "2", maxAge: .days(7))
                }
            }
            let end = ContinuousClock.now + .seconds(2)
            var (worst, key) = (0.0, 0)
            while ContinuousClock.now < end {
                worst = max(worst, longest(1) { _ in attempt { try other.setValue(Record(key), forKey: key % 100) } })
                key += 1
            }
            return worst
        }
    }
    return Scenario(
        "busy-purge-longest-set", unit: "us",
        [variant("after a version bump", purges: true), variant("idle", purges: false)])
}

// MARK: Streams

/// Switches of threads in a second, with fifty observed caches on which nothing changes.
private var observedCaches: Scenario {
    func variant(_ name: String, _ count: Int) -> Variant {
        Variant(name, needsProcess: true) {
            let manager = attempt { try CacheManager(url: Workplace.path()) }
            let caches: [Cache<Int, Int>] = (0..<count).map { number in
                attempt { try manager.cache(named: "\(number)", version: "1", maxAge: .days(7)) }
            }
            let tasks = caches.map { cache in Task { for await _ in cache.changes(forKey: 1) {} } }
            // Until the first value was sent and upkeep is done.
            let never = DispatchSemaphore(value: 0)
            _ = never.wait(timeout: .now() + 3)
            let before = switches()
            _ = never.wait(timeout: .now() + 5)
            let after = switches()
            for task in tasks { task.cancel() }
            return Double(after - before) / 5
        }
    }
    return Scenario(
        "busy-observed-switches", unit: "switches/s", [variant("fifty streams", 50), variant("no stream", 0)])
}

/// The switches of all threads so far.
private func switches() -> Int {
    var usage = rusage()
    #if canImport(Glibc)
    let own = __rusage_who_t(RUSAGE_SELF.rawValue)
    #else
    let own = RUSAGE_SELF
    #endif
    getrusage(own, &usage)
    return usage.ru_nvcsw + usage.ru_nivcsw
}
