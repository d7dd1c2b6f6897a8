import Foundation
import Larder
import LarderTestSupport

/// Stores on a volume that they have filled, how they are emptied, and who opens them next.
extension CacheProgram {
    private static func value(_ key: Int) -> Data {
        Data(repeating: UInt8(truncatingIfNeeded: key &* 31), count: 16_000)
    }

    /// Fills a volume, opens the store again, and says what can be read of it.
    static func reopenFull(_ folder: String, durability: String) throws {
        var configuration = configuration { _ in }
        configuration.durability = durability == "powerLoss" ? .powerLoss : .processCrash
        func opened(_ age: MaxAge) throws -> (CacheManager, Cache<Int, Data>) {
            let manager = try CacheManager(
                url: URL(fileURLWithPath: folder + "/store.sqlite"), configuration: configuration)
            return (
                manager,
                try manager.cache(
                    named: "a", version: "1", maxAge: age,
                    options: CacheOptions(memory: .disabled, inlineLimit: .max, onFullDisk: .fail))
            )
        }
        var count = 0
        do {
            let (manager, cache) = try opened(.days(1))
            say("full", code { while true { try cache.setValue(value(count), forKey: count); count += 1 } })
            try manager.close()
        }
        let (manager, cache) = try opened(.days(2))
        say("read", try (0..<count).allSatisfy { try cache.value(forKey: $0) == value($0) })
        say("count", try cache.count == count)
        try manager.close()
    }

    /// Fills a volume, reads what is there, removes of it in some way, and writes again.
    static func empty(_ folder: String, _ way: String) throws {
        let manager = try CacheManager(
            url: URL(fileURLWithPath: folder + "/store.sqlite"), configuration: configuration { _ in })
        func opened(_ version: CacheVersion) throws -> Cache<Int, Data> {
            try manager.cache(
                named: "a", version: version, maxAge: .unlimited,
                options: CacheOptions(memory: .disabled, inlineLimit: .max, onFullDisk: .fail))
        }
        var cache = try opened("1")
        var count = 0
        say("full", code { while true { try cache.setValue(value(count), forKey: count); count += 1 } })
        say("read", try (0..<count).allSatisfy { try cache.value(forKey: $0) == value($0) })
        var left = 0
        let outcome = code {
            switch way {
            case "remove":
                for key in 0..<20 { try cache.remove(key) }
                left = count - 20
            case "clear": try cache.removeAll()
            case "trim":
                try cache.trim(toCount: 1)
                left = 1
            default: cache = try opened("2")
            }
        }
        say(way, outcome, try cache.count == left)
        // What a clear or another version leaves goes in the background, which stands still here.
        say("maintain", code { try manager.maintain() })
        say("set", code { try cache.setValue(value(-1), forKey: -1) }, try cache.value(forKey: -1) == value(-1))
        say("healthy", try manager.verify().isHealthy)
        try manager.close()
    }
}
