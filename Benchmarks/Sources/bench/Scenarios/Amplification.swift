import Foundation
import Larder

/// Bytes that the process writes for each byte of a value that it stores, the log's copying included.
///
/// They are those that the system counts for its calls (`wchar` of `/proc/self/io`), so a scenario only on Linux.
var amplificationScenarios: [Scenario] {
    guard writtenBytes() != nil else { return [] }
    let count = 20_000
    return [
        amplification("set-new", count, size: 300, of: count),
        amplification("replace", count, size: 300, of: 2_000),
        amplification("set-new-100KB", 200, size: 100_000, of: 200),
        amplification("replace-100KB", 200, size: 100_000, of: 20),
        writtenByReads,
    ]
}

/// - Parameter keys: How many keys the sets go round in.
private func amplification(_ name: String, _ sets: Int, size: Int, of keys: Int) -> Scenario {
    /// In no order, as keys mostly are.
    func key(_ index: Int) -> Int {
        var generator = SeededGenerator(seed: UInt64(index % keys))
        return Int(truncatingIfNeeded: generator.next() >> 1)
    }
    func variant<State>(
        _ name: String, _ make: @escaping () -> State, _ set: @escaping (State, Int, Data) -> Void,
        close: @escaping (State) -> Void
    ) -> Variant {
        Variant(name, needsProcess: true) {
            let before = writtenBytes() ?? 0
            do {
                let state = make()
                for index in 0..<sets { set(state, key(index), blob(size: size, edition: index)) }
                close(state)
            }
            return Double((writtenBytes() ?? 0) - before) / Double(sets * size)
        }
    }
    return Scenario(
        "amplification-\(name)", unit: "B/B",
        [
            variant("larder") {
                BlobStore(entries: 0)
            } _: { store, key, data in
                attempt { try store.cache.setValue(data, forKey: key) }
            } close: { store in
                attempt { try store.manager.close() }
            },
            // It copies its log by itself, and when it is released.
            variant("SQLite") {
                RawSQLite(Workplace.path().path)
            } _: { raw, key, data in
                raw.set(key, data)
            } close: { _ in
            },
            variant("files") {
                FileFolder(Workplace.path().path + ".d")
            } _: { files, key, data in
                files.write(data, key)
            } close: { _ in
            },
        ])
}

/// Bytes written for each of 500,000 reads of 100,000 entries of 300 bytes, closing included.
///
/// It is the second pass over a store that was only read since it was filled, within the access grain, beside a store that
/// writes every access down.
private var writtenByReads: Scenario {
    func variant(_ name: String, grain: Duration?) -> Variant {
        Variant(name, needsProcess: true) {
            let (count, reads) = (100_000, 500_000)
            let url = Workplace.path()
            do {
                let store = RecordStore(entries: count, at: url)
                attempt { try store.manager.close() }
            }
            var written = 0
            for pass in 0..<2 {
                let manager = attempt { try CacheManager(url: url) }
                let cache: Cache<Int, Record> = attempt {
                    try manager.cache(
                        named: "records", version: "1", maxAge: .days(7),
                        options: CacheOptions(accessGrain: grain))
                }
                let before = writtenBytes() ?? 0
                var generator = SeededGenerator(seed: UInt64(pass))
                for _ in 0..<reads { consume(cache[Int.random(in: 0..<count, using: &generator)]) }
                attempt { try manager.close() }
                written = (writtenBytes() ?? 0) - before
            }
            return Double(written) / Double(reads)
        }
    }
    return Scenario(
        "written-by-reads", unit: "B", [variant("larder", grain: nil), variant("exact", grain: .zero)])
}

private func writtenBytes() -> Int? {
    guard let data = FileManager.default.contents(atPath: "/proc/self/io") else { return nil }
    let line = String(decoding: data, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("wchar:") }
    return line.flatMap { Int($0.dropFirst(6).trimmingCharacters(in: .whitespaces)) }
}
