import Foundation
import Larder
import LarderTestSupport

/// Flips bits in copies of a store, opens what comes out, and does everything with it.
///
/// Whatever is damaged, the process must not crash, hang or leave files open, and no read may give what was not stored: the
/// values show whether they are whole, and whose they are.
enum DamageRig {
    enum Part: CaseIterable { case database, log, files }

    private static let keys = 0..<60

    /// The last so many keys are in the log alone, a commit each.
    private static let logged = 40..<60

    /// Makes a store, and leaves it as a process does that is killed.
    static func make(_ path: String) throws {
        let manager = try manager(path)
        let (texts, files) = try caches(manager)
        for key in keys where !logged.contains(key) {
            try texts.setValue(text(key), forKey: "key \(key)", extendedData: Data([UInt8(key)]))
            try files.setValue(text(key), forKey: key)
        }
        try manager.maintain()
        for key in logged { try texts.setValue(text(key), forKey: "key \(key)") }
        say("made")
        // Were it let go of, it would be closed.
        withExtendedLifetime((manager, texts, files)) { _ = readLine() }
    }

    /// Damages copies of the store in a folder, and says what is wrong with what comes of it, a line each.
    ///
    /// In the end it says in how many rounds, of each part, the damage made a difference.
    static func run(_ source: String, in work: String, seed: UInt64, rounds: Int) throws {
        var random = Seeded(seed)
        var marked = Dictionary(uniqueKeysWithValues: Part.allCases.map { ($0, 0) })
        for round in 0..<rounds {
            // A round that hangs ends the process.
            alarm(120)
            let part = Part.allCases[round % 3]
            let folder = URL(fileURLWithPath: work).appendingPathComponent("\(round)")
            try copy(URL(fileURLWithPath: source), to: folder)
            let place = try damage(folder, part, isSure: round < 3, &random)
            say("begin", round, place)
            let (problems, isMarked) = outcome(folder, part)
            for problem in problems { say("problem", round, place, problem) }
            if isMarked { marked[part, default: 0] += 1 }
            let path = folder.path
            // A file that stays open is waited for until the alarm.
            try OpenFiles.wait(for: { $0.hasPrefix(path) }, until: { $0 == 0 })
            try FileManager.default.removeItem(at: folder)
        }
        say("done", Part.allCases.map { "\($0) \(marked[$0] ?? 0)" }.joined(separator: " "))
    }

    private static func manager(_ path: String) throws -> CacheManager {
        var configuration = CacheManager.Configuration()
        configuration.maintenanceInterval = nil
        return try CacheManager(url: URL(fileURLWithPath: path), configuration: configuration)
    }

    private static func caches(_ manager: CacheManager) throws -> (Cache<String, String>, Cache<Int, String>) {
        let codec = ValueCodec<String>.cbor.then(whole)
        return (
            try manager.cache(named: "texts", version: "1", maxAge: .unlimited, codec: codec),
            try manager.cache(
                named: "files", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 100), codec: codec)
        )
    }

    /// Bytes with their checksum behind them.
    private static let whole = DataTransform(identifier: "whole") { data in
        data + withUnsafeBytes(of: checksum(data)) { Data($0) }
    } undo: { data in
        guard data.count >= 8, withUnsafeBytes(of: checksum(data.dropLast(8)), { Data($0) }) == data.suffix(8) else {
            throw Damaged()
        }
        return Data(data.dropLast(8))
    }

    private struct Damaged: Error {}

    private static func checksum(_ data: Data) -> UInt64 {
        Data(data).withUnsafeBytes { Checksum.xxh3($0) }
    }

    private static func text(_ key: Int) -> String { "\(key) " + String(repeating: "abcdefgh", count: 10 + key * 3) }

    // MARK: - Damage

    private static func copy(_ source: URL, to folder: URL) throws {
        try FileManager.default.copyItem(at: source, to: folder)
        // It is made anew by whoever opens first.
        try FileManager.default.removeItem(at: folder.appendingPathComponent("store.sqlite-shm"))
    }

    /// Flips a bit in a file, one that surely means something or any, or lays a sector of something else over it; says where.
    private static func damage(_ folder: URL, _ part: Part, isSure: Bool, _ random: inout Seeded) throws -> String {
        let name: String
        switch part {
        case .database: name = "store.sqlite"
        case .log: name = "store.sqlite-wal"
        case .files:
            let files = folder.appendingPathComponent("store.files")
            let names = try FileManager.default.subpathsOfDirectory(atPath: files.path).filter { $0.contains("/") }
            name = "store.files/" + (names.sorted().randomElement(using: &random) ?? "")
        }
        let url = folder.appendingPathComponent(name)
        var bytes = [UInt8](try Data(contentsOf: url))
        // Behind what is in use there may be room that was not used yet, where a bit means nothing.
        let used = bytes.lastIndex { $0 != 0 } ?? 0
        if part == .database, !isSure, Int.random(in: 0..<4, using: &random) == 0 {
            let start = Int.random(in: 0...used / 512, using: &random) * 512
            let value = UInt8.random(in: 0...255, using: &random)
            for index in start..<start + 512 { bytes[index] = value }
            try Data(bytes).write(to: url)
            return "\(name), sector at \(start) all \(value)"
        }
        // The head of the file, where a bit means most, as often as all the rest.
        let end = part == .database && Bool.random(using: &random) ? 4 * 4096 : used + 1
        let bit = Int.random(in: 0..<8, using: &random)
        // The database's mark, and the log's first page.
        let index = isSure ? (part == .log ? 100 : 3) : Int.random(in: 0..<end, using: &random)
        bytes[index] ^= 1 << bit
        try Data(bytes).write(to: url)
        return "\(name), byte \(index), bit \(bit)"
    }

    // MARK: - Use

    private static func outcome(_ folder: URL, _ part: Part) -> (problems: [String], isMarked: Bool) {
        var problems: [String] = []
        var isMarked = true
        do {
            let manager = try manager(folder.appendingPathComponent("store.sqlite").path)
            let found = Found(manager)
            problems += found.problems
            isMarked = !found.isWhole
            switch part {
            case .database:
                // What the codec cannot see is for the database to find: a key that became another one.
                if !found.strays.isEmpty, found.isHealthy, names(in: folder).allSatisfy({ !$0.contains("corrupt") }) {
                    problems.append("nobody finds anything wrong with \(found.strays)")
                }
            case .log: problems += found.problemsOfLog()
            case .files: problems += found.problemsOfFile()
            }
            problems += use(manager)
            try manager.close()
        } catch let error as CacheError {
            // Refused, and nothing deleted: only what the database itself says can lead to that.
            if part != .database { problems.append("refused: \(error)") }
        } catch {
            problems.append("another error than a CacheError: \(error)")
        }
        return (problems, isMarked)
    }

    private static func names(in folder: URL) -> [String] {
        (FileManager.default.enumerator(atPath: folder.path)?.allObjects ?? []).compactMap { $0 as? String }
    }

    /// What a store shows, read in every way.
    private struct Found {
        private var texts: [Int: String] = [:]
        private var files: [Int: String] = [:]
        private(set) var isHealthy = false
        /// Values of one key that came for another.
        private(set) var strays: [String] = []
        /// What must not be, whatever is damaged.
        private(set) var problems: [String] = []
        private var failures: [String] = []

        init(_ manager: CacheManager) {
            do {
                let (texts, files) = try caches(manager)
                self.texts = read(texts, keys.map { ("key \($0)", $0) })
                self.files = read(files, keys.map { ($0, $0) })
                isHealthy = try manager.verify().isHealthy
            } catch {
                failures.append("\(error)")
            }
        }

        private mutating func read<Key: Codable & Hashable & Sendable>(
            _ cache: Cache<Key, String>, _ keys: [(Key, Int)]
        ) -> [Int: String] {
            let numbers = Dictionary(uniqueKeysWithValues: keys)
            var values: [Int: String] = [:]
            for (key, number) in keys {
                trying { found in
                    guard let value = try cache.value(forKey: key) else { return }
                    found.check(value, number, "value")
                    values[number] = value
                }
                trying { $0.check(try cache.entry(forKey: key)?.value, number, "entry") }
                trying { _ in
                    _ = try (cache.metadata(forKey: key), cache.extendedData(forKey: key), cache.contains(key))
                }
            }
            for (key, value) in cache { check(value, numbers[key] ?? -1, "pass") }
            for entry in cache.entries(orderedBy: .written) { check(entry.value, numbers[entry.key] ?? -1, "order") }
            trying { found in
                for (key, value) in try cache.snapshot() { found.check(value, numbers[key] ?? -1, "snapshot") }
            }
            trying { _ in _ = try (cache.count, cache.isEmpty, cache.sizeOnDisk, Array(cache.keys).count) }
            return values
        }

        private mutating func trying(_ body: (inout Found) throws -> Void) {
            do {
                try body(&self)
            } catch {
                failures.append("\(error)")
                if !(error is CacheError) { problems.append("another error than a CacheError: \(error)") }
            }
        }

        private mutating func check(_ value: String?, _ key: Int, _ how: String) {
            guard let value, value != text(key) else { return }
            if keys.contains(where: { value == text($0) }) {
                strays.append("\(how) of \(key)")
            } else {
                problems.append("the \(how) of \(key) is “\(value.prefix(20))”, which was never stored")
            }
        }

        /// Whether nobody would know that anything was damaged.
        var isWhole: Bool {
            failures.isEmpty && strays.isEmpty && isHealthy && texts.count == keys.count
                && files.count == keys.count - logged.count
        }

        /// What is not in the log alone is there, but for one entry at most; nothing is wrong with the store.
        func problemsOfLog() -> [String] {
            let lost = keys.filter { texts[$0] == nil && !logged.contains($0) }
            var problems: [String] = []
            if !failures.isEmpty || !strays.isEmpty || !isHealthy { problems.append("damage: \(failures) \(strays)") }
            if lost.count > 1 { problems.append("lost: \(lost)") }
            if files.count != keys.count - logged.count { problems.append("lost files: \(files.keys.sorted())") }
            return problems
        }

        /// One file's entry is gone, and nothing else.
        func problemsOfFile() -> [String] {
            var problems: [String] = []
            if !failures.isEmpty || !strays.isEmpty { problems.append("damage: \(failures) \(strays)") }
            if texts.count != keys.count { problems.append("lost: \(texts.keys.sorted())") }
            if files.count != keys.count - logged.count - 1 { problems.append("files: \(files.keys.sorted())") }
            if isHealthy { problems.append("nobody finds anything wrong") }
            return problems
        }
    }

    /// Writes to a store whatever became of it; what that says.
    private static func use(_ manager: CacheManager) -> [String] {
        do {
            let (texts, files) = try caches(manager)
            try texts.setValue(text(1), forKey: "key 1")
            try files.setValues((0..<10).map { ($0, text($0)) })
            try texts.update("key 2") { $0 = text(2) }
            try texts.removeValue(forKey: "key 3")
            try texts.trim(toCount: 10)
            try files.removeAll()
            try manager.maintain()
            _ = try manager.verify(repairing: true)
            try texts.removeAll()
            try files.setValue(text(5), forKey: 5)
            return try files.value(forKey: 5) == text(5) ? [] : ["what was written now is not there"]
        } catch is CacheError {
            // Damage that a second look does not find is not believed, and an altered table is refused.
            return []
        } catch {
            return ["another error than a CacheError: \(error)"]
        }
    }
}
