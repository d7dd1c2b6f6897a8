import Foundation
import Larder
import LarderTestSupport

/// Sub-caches on a volume that has little room.
extension CacheProgram {
    static func configuration(_ log: @escaping @Sendable (LogMessage) -> Void) -> CacheManager.Configuration {
        var configuration = CacheManager.Configuration()
        configuration.log = log
        // Nothing happens by itself.
        configuration.wake = { Wakeup($1) }
        configuration.maintenanceInterval = nil
        return configuration
    }

    private static func cache(_ manager: CacheManager) throws -> Cache<String, Data> {
        try manager.cache(
            named: "a", version: "1", maxAge: .days(1),
            options: CacheOptions(memory: .disabled, accessGrain: .zero, inlineLimit: 1000, onFullDisk: .fail))
    }

    static func code(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "nothing"
        } catch {
            return (error as? CacheError)?.code.description ?? "\(error)"
        }
    }

    /// Takes what is left of the volume, so that not a page more can be written.
    static func takeRest(_ path: String) throws {
        try Data().write(to: URL(fileURLWithPath: path))
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        do {
            while true { try handle.write(contentsOf: Data(count: 4096)) }
        } catch {
            try handle.close()
        }
    }

    /// Fills a volume, and says what each call comes to that finds no room.
    static func fill(_ folder: String) throws {
        let full = Counter()
        let manager = try CacheManager(
            url: URL(fileURLWithPath: folder + "/store.sqlite"),
            configuration: configuration { if $0.error?.code == .storageFull { full.increment() } })
        let cache = try cache(manager)
        let (file, row) = (Data(repeating: 1, count: 2000), Data(repeating: 1, count: 200))
        try cache.setValues(["file": file, "row": row])
        let names = try files(folder)
        var count = 2
        say("full", code { while true { try cache.setValue(Data(count: 900), forKey: "\(count)"); count += 1 } })
        try takeRest(folder + "/rest")
        // The last page may have room for a smaller write than the one that failed.
        _ = code { while true { try cache.setValue(Data([1]), forKey: "\(count)"); count += 1 } }
        let (large, small) = (Data(repeating: 2, count: 3000), Data(repeating: 2, count: 900))
        for (one, other) in [(("file", large), ("row", large)), (("new", small), ("new", large))] {
            let codes = [one, other].map { write in code { try cache.setValue(write.1, forKey: write.0) } }
            say("set", codes[0], codes[1])
        }
        say("many", code { try cache.setValues(["row": Data([2]), "new": small]) })
        say("update", code { try cache.update("new") { $0 = small } })
        say(
            "transaction",
            code {
                try manager.transaction {
                    try $0.removeValue(forKey: "file", in: cache)
                    try $0.setValue(small, forKey: "new", in: cache)
                }
            })
        // Everything is there, in both places, and nothing else.
        say("old", try cache.value(forKey: "file") == file, try cache.value(forKey: "row") == row)
        say("files", try files(folder) == names)
        let before = full.value
        say("info", try manager.cacheInfo().map(\.count) == [count], full.value == before)
        for name in ["rest", "ballast"] { try FileManager.default.removeItem(atPath: folder + "/" + name) }
        try cache.setValue(Data([2]), forKey: "file")
        say("again", try cache.value(forKey: "file") == Data([2]), try manager.verify().isHealthy)
        try manager.close()
    }

    /// Writes more than leaves `floor` bytes free, and says what maintenance makes of that.
    static func sink(_ folder: String, floor: Int64?) throws {
        var configuration = configuration { _ in }
        configuration.freeSpaceFloor = floor
        let manager = try CacheManager(
            url: URL(fileURLWithPath: folder + "/store.sqlite"), configuration: configuration)
        let cache = try cache(manager)
        // In few transactions: the log takes room as well.
        try cache.setValues((0..<250).map { ("\($0)", Data(count: 12_000)) })
        _ = try cache.value(forKey: "0")
        say("below", try free(folder) < floor ?? 2_000_000, try cache.count)
        let report = try manager.maintain()
        say("above", try free(folder) >= floor ?? 2_000_000, report.trimmed == 250 - (try cache.count))
        say("kept", try ["0", "1", "249"].map { try cache.contains($0) })
        // Not much more went than had to.
        say("most", try cache.count > 100, cache.statistics.spaceEvictions == report.trimmed)
        try manager.close()
    }

    /// Sets several times as much as the volume holds, value by value, and says what was wrong after any of that.
    static func holdFloor(_ folder: String, floor: Int64) throws {
        let seconds = Counter()
        var configuration = configuration { _ in }
        configuration.clock = { Date(timeIntervalSince1970: 2_000_000_000 + Double(seconds.value)) }
        configuration.freeSpaceFloor = floor
        let manager = try CacheManager(
            url: URL(fileURLWithPath: folder + "/store.sqlite"), configuration: configuration)
        func cache(_ name: String) throws -> Cache<Int, Data> {
            try manager.cache(
                named: name, version: "1", maxAge: .days(1),
                options: CacheOptions(memory: .disabled, inlineLimit: 1000, onFullDisk: .fail)
            )
        }
        let size = 200_000
        do {
            let forgotten = try cache("forgotten")
            for key in 0..<10 { try forgotten.setValue(Data(count: size), forKey: key, pinned: key == 0) }
            for key in 10..<40 { try forgotten.setValue(Data(count: size), forKey: key, maxAge: .seconds(10)) }
        }
        try manager.flush()
        for _ in 0..<20 { seconds.increment() }
        let current = try cache("current")
        try current.setValue(Data(count: size), forKey: -1, pinned: true)
        func left() throws -> Int64 {
            try (manager.cacheInfo().first { $0.name == "forgotten" }?.sizeOnDisk ?? 0) / Int64(size)
        }
        say("above", try free(folder) > floor, try left())
        // What is written between two looks, and what the log takes meanwhile.
        let slack = Int64(4 << 20 + size + 1 << 20)
        var isFirst = true
        for key in 0..<400 {
            try current.setValue(Data(count: size), forKey: key)
            if try !current.contains(key) || !current.contains(-1) { say("missing after", key) }
            let free = try free(folder)
            if free < floor - slack { say("too little after", key, free) }
            if isFirst, try left() < 40 {
                isFirst = false
                say("first", try left(), try current.count == key + 2)
            }
        }
        say("left", try left(), try current.count > 10, current.statistics.failures)
        let forgotten = try cache("forgotten")
        say("pinned", Array(forgotten.keys), try manager.fileProblems(), try manager.verify().isHealthy)
        try manager.close()
    }

    /// The files that hold values.
    private static func files(_ folder: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder + "/store.files").filter { name in
            var isFolder: ObjCBool = false
            let path = folder + "/store.files/" + name
            return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && !isFolder.boolValue
                && !name.hasPrefix("pool-")
        }.sorted()
    }

    private static func free(_ folder: String) throws -> Int64 {
        let attributes = try FileManager.default.attributesOfFileSystem(forPath: folder)
        return (attributes[.systemFreeSize] as? NSNumber)?.int64Value ?? 0
    }
}
