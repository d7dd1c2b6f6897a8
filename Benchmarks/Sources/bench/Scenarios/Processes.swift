import Foundation
import Larder

/// Two processes on one file.
var processScenarios: [Scenario] { [setsOfTwo, hitsAfterCommits] }

/// Both set a thousand new keys at once; the time is that until both are done.
private var setsOfTwo: Scenario {
    func timed(_ writer: Writer, _ set: (Int) -> Void, _ counter: Counter) -> Double {
        nanoseconds(per: 2 * Writer.count) {
            writer.start()
            for _ in 0..<Writer.count { set(2 * counter.advance()) }
            writer.wait()
        }
    }
    let (next, nextRaw) = (Counter(0), Counter(0))
    let store = Lazily { () -> (RecordStore, Writer) in
        let store = RecordStore(entries: 0)
        return (store, Writer("store", store.manager.url?.path ?? ""))
    }
    let raw = Lazily { () -> (RawSQLite, Writer) in
        let raw = RawSQLite(Workplace.path().path)
        return (raw, Writer("table", raw.path))
    }
    let encoder = CBOREncoder()
    return Scenario(
        "two-processes-set",
        [
            Variant("larder") {
                let (store, writer) = store.value
                return timed(writer, { key in attempt { try store.cache.setValue(Record(key), forKey: key) } }, next)
            },
            Variant("upsert") {
                let (raw, writer) = raw.value
                return timed(writer, { key in raw.set(key, attempt { try encoder.encode(Record(key)) }) }, nextRaw)
            },
        ])
}

/// Hits in memory, each after a commit of another process: the entry's row is looked at before it is served again.
private var hitsAfterCommits: Scenario {
    let keys = Array(0..<1_000)
    let store = Lazily { () -> (RecordStore, Committer) in
        let store = RecordStore(entries: keys.count, memory: MemoryLimits())
        for key in keys { precondition(store.cache[key] != nil) }
        return (store, Committer(store.manager.url?.path ?? ""))
    }
    let raw = Lazily { () -> (RawSQLite, Committer) in
        let raw = rawRecords(entries: keys.count)
        return (raw, Committer(raw.path))
    }
    let decoder = CBORDecoder()
    return Scenario(
        "two-processes-hit",
        [
            Variant("larder") {
                let (store, committer) = store.value
                return committer.nanosecondsAfterCommits(keys) { consume(store.cache[$0]) }
            },
            Variant("select and decode") {
                let (raw, committer) = raw.value
                return committer.nanosecondsAfterCommits(keys) { key in
                    if let data = raw.get(key) { consume(attempt { try decoder.decode(Record.self, from: data) }) }
                }
            },
        ])
}
