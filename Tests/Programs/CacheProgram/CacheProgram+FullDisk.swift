import Foundation
import Larder
import LarderTestSupport

/// Caches that make room on a full disk.
extension CacheProgram {
    /// Fills a disk with entries of two caches, and writes on.
    static func evictWhenFull(_ folder: String, isLarge: Bool, isExpired: Bool) async throws {
        let disk = try FullDisk(folder, valueSize: isLarge ? 20_000 : 900)
        try disk.fill()
        if isExpired { disk.now.add(Date(timeIntervalSince1970: 1_700_000_000 + 2 * 86_400)) }
        let evicted = try disk.cache("evicted", .evict)
        try disk.write(to: evicted)
        do {
            try await evicted.setValue(disk.value, forKey: -3)
            try await evicted.setValues([-4: disk.value, -5: disk.value])
            say("awaited")
        } catch {
            say("awaited", error)
        }
        try disk.look(at: evicted)
    }
}

private final class FullDisk {
    let now = Told<Date>()
    let value: Data
    private let manager: CacheManager
    private var count = 3

    init(_ folder: String, valueSize: Int) throws {
        value = Data(repeating: 7, count: valueSize)
        now.add(Date(timeIntervalSince1970: 1_700_000_000))
        var configuration = CacheProgram.configuration { _ in }
        configuration.clock = { [now] in now.all.last ?? .distantPast }
        manager = try CacheManager(url: URL(fileURLWithPath: folder + "/store.sqlite"), configuration: configuration)
    }

    func cache(_ name: String, _ policy: FullDiskPolicy) throws -> Cache<Int, Data> {
        try manager.cache(
            named: name, version: "1", maxAge: .days(1),
            options: CacheOptions(memory: .disabled, inlineLimit: 2000, onFullDisk: policy))
    }

    func fill() throws {
        let (kept, filling) = (try cache("kept", .fail), try cache("evicted", .fail))
        for key in 0..<10 { try kept.setValue(value, forKey: key) }
        for key in 0..<3 { try filling.setValue(value, forKey: key, pinned: true) }
        say("full", CacheProgram.code { while true { try filling.setValue(value, forKey: count); count += 1 } })
        say("refused", CacheProgram.code { try filling.setValue(value, forKey: -1) })
    }

    func write(to evicted: Cache<Int, Data>) throws {
        say("set", CacheProgram.code { try evicted.setValue(value, forKey: -2) })
    }

    func look(at evicted: Cache<Int, Data>) throws {
        say("loaded", try evicted.value(forKey: -6) { _ in value } == value)
        let new = try (-6 ... -2).allSatisfy { try evicted.value(forKey: $0) == value }
        let pinned = try (0..<3).filter { try evicted.contains($0) }.count
        let kept = try cache("kept", .fail)
        say("new", new, "pinned", pinned, "kept", try kept.entry(forKey: 0, allowingExpired: true) != nil)
        let left = try (3..<count).filter { try evicted.entry(forKey: $0, allowingExpired: true) != nil }
        say("newest", left.isEmpty || left.last == count - 1, "fewer", left.count < count - 3)
        say(
            "kept cache",
            CacheProgram.code { while true { try kept.setValue(value, forKey: .random(in: 100 ... .max)) } })
        say("healthy", try manager.verify().isHealthy)
    }
}
