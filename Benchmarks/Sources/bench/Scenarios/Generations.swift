import Foundation
import Larder

/// What purging and opening cost the caller.
var generationScenarios: [Scenario] {
    let full = Lazily { makeStore(entries: manyEntries) }
    let few = Lazily { makeStore(entries: 10) }
    let live = Lazily { RecordStore(entries: 10) }
    let (used, usedMuch) = (Lazily { makeUsedStore(200) }, Lazily { makeUsedStore(1000) })
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
            "open-live-handle", unit: "us",
            [
                Variant("once more") { openingAgain(live.value) },
                // What it costs once the last handle is gone: its state and its memory are made anew.
                Variant("after the last is gone") { openingAnew(live.value) },
            ]),
        Scenario(
            "first-200-reads", unit: "us",
            [
                Variant("warm") { firstReads(of: used.value, warms: .entries(200)) },
                Variant("cold") { firstReads(of: used.value, warms: nil) },
            ]),
        Scenario(
            "open-warm", unit: "us",
            [
                Variant("1,000 entries") { warming(usedMuch.value, 1000) },
                Variant("cold") { warming(usedMuch.value, nil) },
            ]),
        Scenario(
            "remove-remembered",
            [
                Variant("4,096 remembered") { removing(remembered: 4096) },
                Variant("none") { removing(remembered: 0) },
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

/// Microseconds for a handle to a cache that has one already.
private func openingAgain(_ store: RecordStore) -> Double {
    let count = 10_000
    return nanoseconds(per: count * 1000) {
        for _ in 0..<count { consume(openRecords(store.manager, named: "records")) }
    }
}

/// Microseconds for a handle to a cache that the store knows and nobody has open.
private func openingAnew(_ store: RecordStore) -> Double {
    let count = 1_000
    consume(openRecords(store.manager, named: "closed"))
    return nanoseconds(per: count * 1000) {
        for _ in 0..<count { consume(openRecords(store.manager, named: "closed")) }
    }
}

private func openRecords(_ manager: CacheManager, named name: String) -> Cache<Int, Record> {
    attempt { try manager.cache(named: name, version: "1", maxAge: .days(7), options: CacheOptions(memory: .disabled)) }
}

/// A store of 10,000 entries, whose note names so many.
private func makeUsedStore(_ count: Int) -> URL {
    let url = makeStore(entries: 10_000)
    let (manager, cache) = openWarm(url, .entries(count))
    for key in 0..<count { consume(cache[key * 7]) }
    attempt { try manager.close() }
    return url
}

private func openWarm(_ url: URL, _ warms: WarmStart?) -> (CacheManager, Cache<Int, Record>) {
    let manager = attempt { try CacheManager(url: url) }
    let cache: Cache<Int, Record> = attempt {
        try manager.cache(named: "records", version: "1", maxAge: .days(7), options: CacheOptions(warms: warms))
    }
    let countdown = Countdown(1)
    Task {
        await cache.warmed()
        countdown.step()
    }
    countdown.wait()
    return (manager, cache)
}

/// Microseconds for the reads of a first view, after what was noted is in memory or not.
private func firstReads(of url: URL, warms: WarmStart?) -> Double {
    let (manager, cache) = openWarm(url, warms)
    defer { attempt { try manager.close() } }
    return microseconds { for key in 0..<200 { consume(cache[key * 7]) } }
}

/// Microseconds for an opening, until what was noted is in memory.
private func warming(_ url: URL, _ count: Int?) -> Double {
    var open: (CacheManager, Cache<Int, Record>)?
    let time = microseconds { open = openWarm(url, count.map { .entries($0) }) }
    attempt { try open?.0.close() }
    return time
}

private func removing(remembered: Int) -> Double {
    let (store, count) = (RecordStore(entries: 10), 2_000)
    let cache: Cache<Int, Record> = attempt {
        try store.manager.cache(
            named: "removed", version: "1", maxAge: .days(7), options: CacheOptions(remembersRemovals: remembered))
    }
    attempt { try cache.setValues((0..<count).map { ($0, Record($0)) }) }
    return nanoseconds(per: count) { for key in 0..<count { attempt { try cache.remove(key) } } }
}
