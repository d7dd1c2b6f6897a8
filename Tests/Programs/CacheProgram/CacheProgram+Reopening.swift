import Foundation
import Larder
import LarderTestSupport

/// Stores on a volume that is full, and who opens them next.
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
}
