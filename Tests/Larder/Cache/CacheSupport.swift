import Foundation
import Larder
import LarderTestSupport

/// Where a store is: in memory it has one connection for all that reads and writes.
enum StoreKind: CaseIterable { case file, memory }

/// A store of its own in a time of its own.
struct Workbench {
    let manager: CacheManager
    private let place: TemporaryStore

    init(_ kind: StoreKind = .file) throws {
        place = try TemporaryStore(of: #fileID)
        manager =
            switch kind {
            case .file: try place.manager()
            case .memory: try CacheManager.inMemory(configuration: place.clock.configuration)
            }
    }

    var time: ManualClock { place.clock }

    var folder: TemporaryFolder { place.folder }

    func numbers(
        _ maxAge: MaxAge = .hours(1), _ options: CacheOptions = .init(), version: CacheVersion = "1"
    ) throws -> Cache<Int, String> {
        try manager.cache(named: "numbers", version: version, maxAge: maxAge, options: options.steady)
    }

    func words(_ maxAge: MaxAge = .hours(1), _ options: CacheOptions = .init()) throws -> Cache<String, Int> {
        try manager.cache(named: "words", version: "1", maxAge: maxAge, options: options.steady)
    }

    /// Handles pressure by hand; that of the system, and of other tests, changes nothing before and after.
    func handlePressure(_ level: MemoryPressure) throws {
        let numbers: Cache<Int, String> = try manager.cache(named: "numbers", version: "1", maxAge: .hours(1))
        let words: Cache<String, Int> = try manager.cache(named: "words", version: "1", maxAge: .hours(1))
        manager.handleMemoryPressure(level)
        withExtendedLifetime((numbers, words, try self.numbers(), try self.words())) {}
    }

    /// Whether no statement stands on a row.
    var isIdle: Bool {
        get throws { try StoreProbe(manager).isIdle }
    }
}

struct Offline: Error {}
