import Foundation
import Larder
import LarderTestSupport

/// Stores that are damaged, on full disks, and on disks that fail or refuse.
extension CacheProgram {
    /// Opens a store, reads all entries and writes one; each of the two is tried again once.
    static func readAndWrite(_ path: String) throws {
        let manager = try openManager(path)
        let cache: Cache<Int, Data> = try manager.cache(
            named: "numbers", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled))
        let key = Int.random(in: 1000 ... .max)
        report { try "entries \(cache.snapshot().count)" }
        report {
            try cache.setValue(Data([1]), forKey: key)
            return "wrote"
        }
        try manager.close()
    }

    /// Prints what `body` returns, or its failure, after which it runs again once.
    private static func report(_ body: () throws -> String) {
        for _ in 0..<2 {
            do { return say(try body()) } catch { say("failed", code(of: error)) }
        }
    }

    /// Opens a damaged store on four threads at the same moment, each of which reads all entries and writes one.
    static func openTogether(_ path: String, index: Int) throws {
        say("ready")
        _ = readLine()
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            let number = index * 4 + thread
            do {
                let manager = try retrying { try openManager(path) }
                let cache = try retrying { try DamagedSample.cache(manager) }
                let wrong = try retrying { try DamagedSample.check(cache).wrong }
                try retrying { try cache.setValue("\(number)", forKey: -1 - number) }
                guard wrong.isEmpty, try retrying({ try cache.value(forKey: -1 - number) }) == "\(number)" else {
                    return say("wrong", wrong.sorted())
                }
                try manager.close()
                say("done")
            } catch {
                say("failed", code(of: error))
            }
        }
    }

    /// Runs a call again, twice at most, if it fails for damage or because another process has replaced the file.
    private static func retrying<R>(_ body: () throws -> R) throws -> R {
        for _ in 0..<2 {
            do {
                return try body()
            } catch let error as CacheError {
                guard [.corrupt, .storageUnavailable].contains(error.code) else { throw error }
            }
        }
        return try body()
    }

    /// Opens a store as a user who is not root, to whom permissions apply, and prints the number of its entries.
    static func openAsNobody(_ path: String, isReadOnly: Bool) throws {
        if getuid() == 0, setgid(65534) != 0 || setuid(65534) != 0 { exit(2) }
        let manager = try openManager(path) { if isReadOnly { $0.access = .readOnly } }
        say("entries", try DamagedSample.cache(manager).count)
        try manager.close()
    }

    // MARK: Large files

    /// Takes a file as a value, and prints the megabytes by which that has raised the most memory that was ever in use.
    static func takeFile(_ folder: String, megabytes: Int) throws {
        let source = URL(fileURLWithPath: folder + "/source")
        try Data().write(to: source)
        let writer = try FileHandle(forWritingTo: source)
        for number in 0..<megabytes { try writer.write(contentsOf: megabyte(number)) }
        try writer.close()
        let manager = try openManager(folder + "/store.sqlite")
        let cache: Cache<Int, Data> = try manager.cache(named: "files", version: "1", maxAge: .unlimited)
        let before = try mostMemory()
        try cache.setValue(contentsOf: source, forKey: 1)
        say("megabytes", (try mostMemory() - before) / 1024)
        guard let url = try cache.fileURL(forKey: 1) else { return say("none") }
        let reader = try FileHandle(forReadingFrom: url)
        let isSame = try (0..<megabytes).allSatisfy { try reader.read(upToCount: 1 << 20) == megabyte($0) }
        say("same", try isSame && reader.read(upToCount: 1) == nil)
        say("problems", try manager.verify().problems)
    }

    private static func megabyte(_ number: Int) -> Data {
        Data(repeating: UInt8(truncatingIfNeeded: number &* 7 &+ 1), count: 1 << 20)
    }

    /// The kilobytes of memory that the process had at its fullest.
    private static func mostMemory() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") } ?? ""
        return Int(line.filter(\.isNumber)) ?? 0
    }

    // MARK: Full disks

    /// Damages a store on a disk without room for a second one, reads it, makes room, and reads it again.
    static func salvageOnFullDisk(_ folder: String) throws {
        let (path, rest) = (folder + "/store.sqlite", URL(fileURLWithPath: folder + "/rest"))
        let url = URL(fileURLWithPath: path)
        let sample = try DamagedSample(at: url)
        try eat(rest)
        // The index of the log needs some room.
        try rest.cut(to: max(0, rest.fileSize() - 16 * 4096))
        let full = try openManager(path) { $0.maintenanceInterval = nil }
        say("read", outcome { _ = try DamagedSample.check(DamagedSample.cache(full)) })
        try full.close()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        say("unchanged", try sample.isDamaged(url), names.filter { $0.contains("salvaged") || $0.contains("damaged") })

        try FileManager.default.removeItem(at: rest)
        let manager = try openManager(path)
        let (missing, wrong) = try DamagedSample.check(DamagedSample.cache(manager))
        say("lost only damaged", missing.isDisjoint(with: sample.kept), "wrong", wrong.sorted())
        say("problems", try manager.verify().problems)
        try manager.close()
    }

    /// Takes all room of a disk for a file.
    static func eat(_ url: URL) throws {
        try Data().write(to: url)
        let handle = try FileHandle(forWritingTo: url)
        do {
            while true { try handle.write(contentsOf: Data(count: 4096)) }
        } catch {
            try handle.close()
        }
    }

    /// Fills a disk by handles that fail on a full disk, and goes on by a handle that evicts.
    static func fillDisk(_ folder: String, valueSize: Int) throws {
        let path = folder + "/store.sqlite"
        func value(_ key: Int) -> Data { Data(repeating: UInt8(truncatingIfNeeded: key &* 31), count: valueSize) }
        func open(_ name: String, _ manager: CacheManager, _ policy: FullDiskPolicy) throws -> Cache<Int, Data> {
            try manager.cache(
                named: name, version: "1", maxAge: .unlimited,
                options: CacheOptions(inlineLimit: 2000, onFullDisk: policy, clearsOnMemoryPressure: false))
        }
        // Uses within one millisecond are in no order.
        let moments = Counter()
        /// Nothing happens in the background.
        func opened() throws -> CacheManager {
            try openManager(path) {
                $0.maintenanceInterval = nil
                $0.clock = { Date(timeIntervalSince1970: 1_700_000_000 + Double(moments.increment()) / 1000) }
            }
        }

        let first = try opened()
        let (kept, filling) = (try open("kept", first, .fail), try open("evicted", first, .fail))
        for key in 0..<10 { try kept.setValue(value(key), forKey: key) }
        for key in 0..<3 { try filling.setValue(value(key), forKey: key, pinned: true) }
        var count = 3
        say("full", outcome { while true { try filling.setValue(value(count), forKey: count); count += 1 } })
        // Also brings all values into memory.
        say("read", try (0..<count).allSatisfy { try filling.value(forKey: $0) == value($0) })

        let evicting = try open("evicted", first, .evict)
        let new = Array(-60 ... -1)
        say("set", outcome { for key in new { try evicting.setValue(value(key), forKey: key) } })
        func state(_ evicting: Cache<Int, Data>, _ kept: Cache<Int, Data>) throws -> [Bool] {
            try [
                new.allSatisfy { try evicting.value(forKey: $0) == value($0) },
                (0..<3).allSatisfy { try evicting.value(forKey: $0) == value($0) },
                (0..<10).allSatisfy { try kept.value(forKey: $0) == value($0) },
            ]
        }
        let found = try state(evicting, kept)
        say("new", found[0], "pinned", found[1], "kept", found[2])
        let left = try (3..<count).filter { try evicting.contains($0) }
        let isEvicted = evicting.statistics.spaceEvictions > 0
        say("evicted", isEvicted, "first", left.elementsEqual((3..<count).suffix(left.count)))
        say(
            "memory",
            try (0..<count).allSatisfy { try evicting.value(forKey: $0) == (evicting.contains($0) ? value($0) : nil) })
        say("full", outcome { while true { try kept.setValue(value(0), forKey: .random(in: 100 ... .max)) } })
        try first.close()

        let second = try opened()
        let again = try state(open("evicted", second, .fail), open("kept", second, .fail))
        say("reopened", again == [true, true, true])
        say("problems", try second.verify().problems)
        try second.close()
    }

    /// Writes twice as much as a floor of free space leaves room for, and prints what maintenance leaves.
    static func holdFloor(_ folder: String) throws {
        let path = folder + "/store.sqlite"
        func free() throws -> Int64 {
            let attributes = try FileManager.default.attributesOfFileSystem(forPath: folder)
            return (attributes[.systemFreeSize] as? NSNumber)?.int64Value ?? 0
        }
        func values(_ manager: CacheManager) throws -> Cache<Int, Data> {
            try manager.cache(
                named: "values", version: "1", maxAge: .unlimited,
                options: CacheOptions(memory: .disabled, inlineLimit: 1000))
        }
        let first = try openManager(path)
        try values(first).setValue(Data(count: 12_000), forKey: 0, pinned: true)
        try first.close()
        let floor = try free() - 1_500_000
        let manager = try openManager(path) {
            $0.freeSpaceFloor = floor
            $0.maintenanceInterval = nil
        }
        let cache = try values(manager)
        // In one transaction, since the log takes room too.
        try cache.setValues((1...250).map { ($0, Data(count: 12_000)) })
        try manager.maintain()
        let left = Array(cache.keys)
        // The commit that removes the last entries may be in the log.
        say("floor", try free() >= floor - 65_536, "enough left", left.count > 50)
        say("pinned", left.first == 0, "newest", left.dropFirst().elementsEqual((1...250).suffix(left.count - 1)))
        say("evicted", cache.statistics.spaceEvictions == 251 - left.count)
        say("problems", try manager.verify().problems)
        try manager.close()
    }
}
