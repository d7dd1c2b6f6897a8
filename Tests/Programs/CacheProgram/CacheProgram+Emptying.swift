import Foundation
import Larder
import LarderTestSupport

/// Stores on a volume that is full, and how they get out of that.
extension CacheProgram {
    /// What is stored: rows of a line, rows of some pages, files.
    private struct Kind {
        let size: Int
        let inlineLimit: Int

        init(_ name: String) {
            (size, inlineLimit) =
                switch name {
                case "rows": (90, .max)
                case "wide": (16_000, .max)
                default: (20_000, 1000)
                }
        }
    }

    private typealias Bytes = Cache<Int, Data>

    private typealias Removal = @Sendable (CacheManager, Bytes, _ age: () -> Void) throws -> Void

    private static let removals: [(name: String, run: Removal)] = [
        ("subscript", { _, cache, _ in for key in 0..<20 { cache[key] = nil } }),
        ("remove", { _, cache, _ in for key in 0..<20 { try cache.remove(key) } }),
        ("removeValue", { _, cache, _ in for key in 0..<20 { try cache.removeValue(forKey: key) } }),
        ("removeValues", { _, cache, _ in try cache.removeValues(forKeys: 0..<100_000) }),
        ("update", { _, cache, _ in for key in 0..<20 { try cache.update(key) { $0 = nil } } }),
        (
            "transaction",
            { manager, cache, _ in
                try manager.transaction { for key in 0..<3 { try $0.removeValue(forKey: key, in: cache) } }
            }
        ),
        ("removeAll", { _, cache, _ in try cache.removeAll() }),
        ("clear", { _, cache, _ in try cache.clear() }),
        ("removeAll where", { _, cache, _ in try cache.removeAll { $0.key % 2 == 0 } }),
        ("removeAll whereMetadata", { _, cache, _ in try cache.removeAll { _, _ in true } }),
        ("trim to a count", { _, cache, _ in try cache.trim(toCount: 1) }),
        ("trim to a size", { _, cache, _ in try cache.trim(toSize: 1000) }),
        ("limit", { _, cache, _ in try cache.disk.setLimits(DiskLimits(countLimit: 3)) }),
        (
            "removeExpired",
            { _, cache, age in
                age()
                try cache.removeExpired()
            }
        ),
        (
            "maintain",
            { manager, _, age in
                age()
                try manager.maintain()
            }
        ),
        ("removeCache", { manager, _, _ in try manager.removeCache(named: "a") }),
        ("removeAll of everything", { manager, _, _ in try manager.removeAll() }),
        (
            "purge",
            { manager, _, _ in
                let _: Bytes = try manager.cache(named: "a", version: "2", maxAge: .unlimited)
            }
        ),
    ]

    private static func value(_ key: Int, _ size: Int) -> Data {
        Data(repeating: UInt8(truncatingIfNeeded: key &* 31), count: size)
    }

    /// Fills the volume by way of the store, and then to the last row that fits; or lets somebody else fill it.
    private static func fill(_ cache: Bytes, _ kind: Kind, _ rest: String?) throws -> [Int: Int] {
        var sizes: [Int: Int] = [:]
        func add(_ size: Int) throws {
            let key = sizes.count
            try cache.setValue(value(key, size), forKey: key)
            sizes[key] = size
        }
        if let rest {
            while sizes.count * kind.size < 600_000 { try add(kind.size) }
            try takeRest(rest)
        }
        for size in [kind.size, 90] {
            let outcome = code { while true { try add(size) } }
            if outcome != "storageFull" { say("filling", outcome) }
        }
        return sizes
    }

    /// Removes in every way from a store whose volume is full, and says what went wrong.
    static func empty(_ folder: String, _ kindName: String, isFilledByOther: Bool) throws {
        let kind = Kind(kindName)
        let rest = folder + "/rest"
        for (name, remove) in removals {
            let seconds = Counter()
            var configuration = configuration { _ in }
            configuration.clock = { Date(timeIntervalSince1970: 2_000_000_000 + Double(seconds.value)) }
            let manager = try CacheManager(
                url: URL(fileURLWithPath: folder + "/store.sqlite"), configuration: configuration)
            let options = CacheOptions(memory: .disabled, inlineLimit: kind.inlineLimit, onFullDisk: .fail)
            var cache: Bytes = try manager.cache(named: "a", version: "1", maxAge: .seconds(10), options: options)
            let sizes = try fill(cache, kind, isFilledByOther ? rest : nil)
            func expect(_ what: String, _ expected: String = "nothing", _ body: () throws -> Void) {
                let outcome = code(body)
                if outcome != expected { say("\(name): \(what):", outcome) }
            }
            for number in 0..<40 {
                expect("a set", "storageFull") { try cache.setValue(value(0, 16_000), forKey: 100_000 + number) }
            }
            for (key, size) in sizes.prefix(2000) where try cache.value(forKey: key) != value(key, size) {
                say("\(name): value of", key)
            }
            expect("removing") { try remove(manager, cache) { for _ in 0..<20 { seconds.increment() } } }
            // The rows of a clear go in the background, which stands still here.
            expect("maintaining") { try manager.maintain() }
            cache = try manager.cache(named: "a", version: "3", maxAge: .seconds(10), options: options)
            expect("maintaining again") { try manager.maintain() }
            for key in 0..<20 {
                expect("setting") { try cache.setValue(value(key, min(kind.size, 4000)), forKey: key) }
            }
            if try !manager.verify().isHealthy { say("\(name): not healthy") }
            try manager.close()
            for file in try FileManager.default.contentsOfDirectory(atPath: folder) {
                try FileManager.default.removeItem(atPath: folder + "/" + file)
            }
        }
        say("done", removals.count)
    }

    /// Fills a volume, opens the store again, and says what can be done with it.
    static func reopenFull(_ folder: String, durability: String) throws {
        var configuration = configuration { _ in }
        configuration.durability = durability == "powerLoss" ? .powerLoss : .processCrash
        func opened(_ age: MaxAge) throws -> (CacheManager, Bytes) {
            let manager = try CacheManager(
                url: URL(fileURLWithPath: folder + "/store.sqlite"), configuration: configuration)
            return (
                manager,
                try manager.cache(
                    named: "a", version: "1", maxAge: age,
                    options: CacheOptions(
                        memory: .disabled, disk: DiskLimits(countLimit: 1_000_000), onFullDisk: .fail))
            )
        }
        let sizes: [Int: Int]
        do {
            let (manager, cache) = try opened(.days(1))
            sizes = try fill(cache, Kind("rows"), nil)
            try manager.close()
        }
        // As if the library had never kept any room: all of the log was copied at closing.
        if durability == "without a log" { try Data().write(to: URL(fileURLWithPath: folder + "/store.sqlite-wal")) }
        try takeRest(folder + "/rest")
        let (manager, cache) = try opened(.days(2))
        say("read", try sizes.allSatisfy { try cache.value(forKey: $0) == value($0, $1) })
        say("set", code { try cache.setValue(value(0, 16_000), forKey: -1) })
        let other: Bytes = try manager.cache(named: "a", version: "1", maxAge: .days(3))
        say("count", try other.count == sizes.count)
        try manager.close()
    }

    /// Fills a volume, begins to empty it, and waits to be killed; or goes on where somebody was.
    static func dieFull(_ folder: String) throws {
        let manager = try CacheManager(
            url: URL(fileURLWithPath: folder + "/store.sqlite"), configuration: configuration { _ in })
        let cache: Bytes = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled, onFullDisk: .fail))
        if try cache.isEmpty {
            let sizes = try fill(cache, Kind("rows"), nil)
            for key in 0..<20 { try cache.remove(key) }
            say("removed", sizes.count - 20 == (try cache.count))
            kill(getpid(), SIGKILL)
        }
        say("found", try cache.count > 1000, code { try cache.removeAll() }, code { try manager.maintain() })
        say("set", code { for key in 0..<20 { try cache.setValue(value(key, 4000), forKey: key) } })
        say("healthy", try manager.verify().isHealthy)
        try manager.close()
    }
}
