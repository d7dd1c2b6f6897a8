import Foundation
import Larder
import LarderTestSupport

/// A store of its own in a time of its own.
struct Workbench {
    let folder: TemporaryFolder
    let time = ManualTime()
    let manager: CacheManager

    init() throws {
        folder = try TemporaryFolder()
        var configuration = time.configuration
        configuration.maintenanceInterval = nil
        manager = try CacheManager(url: folder("store.sqlite"), configuration: configuration)
    }

    func numbers(
        _ maxAge: MaxAge = .hours(1), _ options: CacheOptions = .init(), version: CacheVersion = "1"
    ) throws -> Cache<Int, String> {
        try manager.cache(named: "numbers", version: version, maxAge: maxAge, options: steady(options))
    }

    func words(_ maxAge: MaxAge = .hours(1), _ options: CacheOptions = .init()) throws -> Cache<String, Int> {
        try manager.cache(named: "words", version: "1", maxAge: maxAge, options: steady(options))
    }

    /// Options that other tests' pressure on memory does not reach.
    private func steady(_ options: CacheOptions) -> CacheOptions {
        var options = options
        options.clearsOnMemoryPressure = false
        return options
    }

    /// Whether no statement stands on a row.
    var isIdle: Bool {
        get throws { try manager.store().isIdle }
    }
}

struct Offline: Error {}
