import Foundation
import Larder

/// What purging and opening cost the caller, and what the reclaiming of the rows costs those who read meanwhile.
var generationScenarios: [Scenario] {
    let full = Lazily { makeStore(entries: manyEntries) }
    let few = Lazily { makeStore(entries: 10) }
    return [
        Scenario(
            "open-with-million", unit: "us", target: 3,
            [
                Variant("10^6 entries") { opening(full.value) },
                Variant("10 entries") { opening(few.value) },
            ]),
        Scenario(
            "purge-million", unit: "us",
            [
                Variant("version bump", needsProcess: true) { purge(clearing: false) },
                Variant("removeAll", needsProcess: true) { purge(clearing: true) },
            ]),
        Scenario(
            "read-while-reclaiming", unit: "ns", target: 2,
            [
                Variant("p99 meanwhile", needsProcess: true) { readsWhileReclaiming().meanwhile },
                Variant("idle median", needsProcess: true) { readsWhileReclaiming().idle },
                // What the machine does to a read by itself.
                Variant("idle p99", needsProcess: true) { readsWhileReclaiming().idleLate },
            ]),
    ]
}

/// A million, or what stands for it where only the run counts.
private let manyEntries = Options.isSmall ? 100_000 : 1_000_000

private func makeStore(entries: Int) -> URL {
    let url = Workplace.path()
    let store = RecordStore(entries: entries, at: url)
    attempt { try store.manager.close() }
    return url
}

private func microseconds(_ body: () -> Void) -> Double { nanoseconds(per: 1, body) / 1000 }

private func opening(_ url: URL) -> Double {
    var kept: (CacheManager, Cache<Int, Record>)?
    defer { consume(kept) }
    return microseconds {
        let manager = attempt { try CacheManager(url: url) }
        let cache: Cache<Int, Record> = attempt {
            try manager.cache(named: "records", version: "1", maxAge: .days(7))
        }
        kept = (manager, cache)
    }
}

private func purge(clearing: Bool) -> Double {
    let store = RecordStore(entries: manyEntries)
    // So that the copying of the log, after so much was written, is over.
    attempt { try store.manager.maintain() }
    return microseconds {
        attempt {
            if clearing {
                try store.cache.removeAll()
            } else {
                let _: Cache<Int, Record> = try store.manager.cache(named: "records", version: "2", maxAge: .days(7))
            }
        }
    }
}

/// Reads of one sub-cache while the rows of another, a hundred thousand, are reclaimed.
private func readsWhileReclaiming() -> (idle: Double, idleLate: Double, meanwhile: Double) {
    let store = RecordStore(entries: 100_000)
    let other: Cache<Int, Record> = attempt {
        try store.manager.cache(
            named: "other", version: "1", maxAge: .days(7), options: CacheOptions(memory: .disabled))
    }
    attempt { try other.setValues((0..<100_000).map { ($0, Record($0)) }) }
    var generator = SeededGenerator(seed: 5)
    func sample(_ count: Int) -> [Double] {
        (0..<count).map { _ in
            let key = Int.random(in: 0..<100_000, using: &generator)
            return nanoseconds(per: 1) { consume(store.cache[key]) }
        }
    }
    _ = sample(20_000)
    let idle = sample(50_000)
    attempt { try other.removeAll() }
    let meanwhile = Result.quantile(0.99, sample(500_000))
    return (Result.quantile(0.5, idle), Result.quantile(0.99, idle), meanwhile)
}
