import Foundation
import Larder

/// What sweeping costs for each of so many expired entries.
var expiryScenarios: [Scenario] {
    let count = Options.isSmall ? 2_000 : 20_000
    return [
        Scenario(
            "expiry-sweep",
            [
                Variant("larder", operations: count, eachTime: { AgedStore(entries: count) }) { store in
                    precondition(attempt { try store.cache.removeExpired() } == count)
                },
                Variant("delete", operations: count, eachTime: { rawRecords(entries: count) }) { raw in
                    raw.remove(below: count)
                },
            ])
    ]
}

/// A store whose entries are over, by a clock of its own.
private final class AgedStore {
    private let store: RecordStore
    var cache: Cache<Int, Record> { store.cache }

    init(entries: Int) {
        let clock = Clock()
        var configuration = CacheManager.Configuration()
        configuration.clock = { clock.now }
        configuration.maintenanceInterval = nil
        store = RecordStore(entries: entries, maxAge: .seconds(60), configuration: configuration)
        attempt { [store] in try store.manager.maintain() }
        clock.advance(by: 3600)
    }
}
