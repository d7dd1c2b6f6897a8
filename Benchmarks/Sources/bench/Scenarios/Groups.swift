import Foundation
import Larder

/// Groups of a thousand entries in a store of a million, beside the same groups in a store that holds little else.
///
/// What a call returns decides its time, and not the size of the table.
var groupScenarios: [Scenario] {
    let large = Lazily { GroupedStore(others: Options.isSmall ? 100_000 : 1_000_000) }
    let small = Lazily { GroupedStore(others: 1_000) }
    func scenario(_ name: String, refills: Bool = false, _ body: @escaping (GroupedStore) -> Void) -> Scenario {
        func variant(_ name: String, _ store: Lazily<GroupedStore>) -> Variant {
            Variant(
                name, operations: GroupedStore.size, eachTime: { refills ? store.value.filled() : store.value }, body)
        }
        return Scenario(name, target: 1.5, [variant("of a million", large), variant("of two thousand", small)])
    }
    return [
        scenario("group-keys") { store in consume(attempt { try store.cache.keys(tagged: "group") }) },
        scenario("group-count") { store in consume(attempt { try store.cache.count(tagged: "group") }) },
        scenario("group-tags") { store in consume(attempt { try store.cache.tags() }) },
        scenario("group-entries") { store in consume(attempt { try store.cache.entries(forKeys: store.keys) }) },
        scenario("group-metadata") { store in consume(attempt { try store.cache.metadata(forKeys: store.keys) }) },
        scenario("group-remove-keys", refills: true) { store in
            precondition(attempt { try store.cache.removeValues(forKeys: store.keys) } == store.keys.count)
        },
        scenario("group-remove-tag", refills: true) { store in
            precondition(attempt { try store.cache.removeAll(tagged: "group") } == store.keys.count)
        },
        scenario("group-remove-prefix", refills: true) { store in
            precondition(attempt { try store.cache.removeAll(prefix: "group/") } == store.keys.count)
        },
    ]
}

/// A store with a thousand entries that have a tag and a prefix, between others.
private final class GroupedStore {
    static let size = 1_000
    let manager: CacheManager
    let cache: Cache<String, Data>
    let keys = (0..<size).map { "group/\(scattered($0))" }

    init(others: Int) {
        var configuration = CacheManager.Configuration()
        configuration.maintenanceInterval = nil
        manager = attempt { try CacheManager(url: Workplace.path(), configuration: configuration) }
        cache = attempt { [manager] in
            try manager.cache(
                named: "groups", version: "1", maxAge: .days(7), options: CacheOptions(memory: .disabled))
        }
        for start in stride(from: 0, to: others, by: 10_000) {
            attempt {
                try cache.setValues(
                    (start..<min(start + 10_000, others)).map {
                        ("\($0 % 2 == 0 ? "a" : "z")/\(scattered($0))", blob(size: 300, edition: 1))
                    })
            }
        }
        _ = filled()
        attempt { try manager.flush() }
    }

    /// The store with its group whole.
    func filled() -> GroupedStore {
        attempt {
            try manager.transaction { transaction in
                for key in keys {
                    try transaction.setValue(blob(size: 300, edition: 1), forKey: key, in: cache, tags: ["group"])
                }
            }
        }
        return self
    }
}
