import Foundation
import Larder

/// Values that are carried over to another version, beside a program that reads each and writes it to another cache.
var migrationScenarios: [Scenario] {
    let count = Options.isSmall ? 10_000 : 100_000
    let large = Options.isSmall ? 100 : 1_000
    return [
        Scenario(
            "migrate-records", target: 1.5,
            [
                Variant("larder", operations: count, eachTime: { RecordStore(entries: count) }) { store in
                    let cache: Cache<Int, Record> = attempt {
                        try store.manager.cache(
                            named: "records", version: "2", maxAge: .days(7),
                            options: CacheOptions(memory: .disabled),
                            migrations: [.from("1", as: Record.self) { Record($0.id, edition: 1) }])
                    }
                    precondition(attempt { try cache.contains(count - 1) })
                },
                Variant("by hand", operations: count, eachTime: { RecordStore(entries: count) }) { store in
                    let cache: Cache<Int, Record> = attempt {
                        try store.manager.cache(
                            named: "others", version: "2", maxAge: .days(7),
                            options: CacheOptions(memory: .disabled))
                    }
                    var batch: [(Int, Record)] = []
                    for (key, record) in store.cache {
                        batch.append((key, Record(record.id, edition: 1)))
                        if batch.count == 500 {
                            attempt { try cache.setValues(batch) }
                            batch = []
                        }
                    }
                    attempt { try cache.setValues(batch) }
                    precondition(attempt { try cache.contains(count - 1) })
                },
            ]),
        Scenario(
            "migrate-keeping", unit: "us",
            [
                Variant("1,000 files") { keepingTime(of: large) },
                Variant("10 files") { keepingTime(of: 10) },
            ]),
    ]
}

/// The microseconds of an opening that keeps values of 100 KB.
private func keepingTime(of count: Int) -> Double {
    let manager = attempt { try CacheManager(url: Workplace.path()) }
    func open(_ version: CacheVersion, _ steps: [CacheMigration<Int, Data>]) -> Cache<Int, Data> {
        attempt {
            try manager.cache(
                named: "large", version: version, maxAge: .days(7), options: CacheOptions(memory: .disabled),
                migrations: steps)
        }
    }
    let old = open("1", [])
    for key in 0..<count { attempt { try old.setValue(blob(size: 100_000, edition: key), forKey: key) } }
    var new: Cache<Int, Data>?
    let time = nanoseconds(per: 1_000) { new = open("2", [.keeping("1")]) }
    precondition(attempt { try new?.count } == count)
    return time
}
