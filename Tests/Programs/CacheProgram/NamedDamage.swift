import Foundation
import Larder
import LarderTestSupport

/// Kinds of damage, each by its name, done to copies of a store; then everything is done with the store.
///
/// Whatever is damaged, no call may hang or crash, and no read may give a value that was not written. No entry may be lost
/// but those whose bytes the damage hit, and those that SQLite cannot reach any more.
struct NamedDamage {
    enum Kind: String, CaseIterable {
        case header = "a byte of the header"
        case freeListCount = "the header's count of free pages"
        case largestRoot = "the header's largest root page"
        case schemaPage = "the page of the schema"
        case page = "a whole page"
        case emptyPage = "a page of zeros"
        case pagePointer = "a pointer to a page"
        case cellPointer = "a pointer to a cell"
        case cell = "a bit in a cell of a table"
        case cellHead = "the types of a row's columns"
        case indexCell = "a bit in a cell of an index"
        case cacheRow = "a row of the table of caches"
        case cut = "a file that was cut"
        case closedLog = "the log after closing"
        case killedLog = "a bit in the log after a kill"
        case killedLogHead = "the head of the log after a kill"
        case valueFile = "a bit in a value file"
        case missingFile = "a value file that is gone"

        var isOfLog: Bool { [.killedLog, .killedLogHead].contains(self) }
    }

    private static let pageSize = 4096
    private let work: URL
    private var random: Seeded
    private let closed: SampleStore
    private let pages: [Int: Set<SampleStore.Entry>]
    private let killed: URL

    init(_ work: String, seed: UInt64) throws {
        self.work = URL(fileURLWithPath: work)
        random = Seeded(seed)
        let folder = self.work.appendingPathComponent("closed")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        closed = try SampleStore(at: folder.appendingPathComponent("store.sqlite"), count: 130)
        pages = try closed.entriesByPage()
        // What a process leaves that is killed: some of the entries are in the log alone.
        killed = self.work.appendingPathComponent("killed")
        let live = self.work.appendingPathComponent("live")
        try FileManager.default.copyItem(at: folder, to: live)
        let manager = try CacheManager(
            url: live.appendingPathComponent("store.sqlite"), configuration: SampleStore.configuration)
        let cache = try SampleStore.cache(manager, SampleStore.names[0])
        for key in 0..<20 { try cache.setValue(SampleStore.value(SampleStore.names[0], key), forKey: key) }
        try FileManager.default.copyItem(at: live, to: killed)
        try manager.close()
    }

    /// Runs so many rounds, and says what is wrong, a line each; in the end how many rounds of each kind there were.
    mutating func run(rounds: Int) throws {
        var slowest: (seconds: Double, what: String) = (0, "")
        for round in 0..<rounds {
            // A round that hangs ends the process.
            alarm(60)
            let kind = Kind.allCases[round % Kind.allCases.count]
            let folder = work.appendingPathComponent("round")
            try FileManager.default.copyItem(
                at: kind.isOfLog ? killed : closed.url.deletingLastPathComponent(), to: folder)
            defer { remove(folder) }
            let shared = folder.appendingPathComponent("store.sqlite-shm")
            if FileManager.default.fileExists(atPath: shared.path) { try FileManager.default.removeItem(at: shared) }
            let (place, mayLose) = try damage(folder, kind)
            say("begin", round, kind.rawValue, place)
            let start = ContinuousClock.now
            for problem in outcome(folder, kind, mayLose) { say("problem", round, kind.rawValue, place, problem) }
            let seconds = (ContinuousClock.now - start) / .seconds(1)
            if seconds > slowest.seconds { slowest = (seconds, "\(kind.rawValue) \(place)") }
        }
        say("done", rounds, "slowest", slowest.seconds, slowest.what)
    }

    private func remove(_ folder: URL) {
        do {
            try FileManager.default.removeItem(at: folder)
        } catch {
            say("problem", "the folder cannot be removed", error)
        }
    }

    // MARK: - Damage

    /// Damages a store, and says where, and which entries that may cost.
    private mutating func damage(_ folder: URL, _ kind: Kind) throws -> (place: String, mayLose: Set<SampleStore.Entry>)
    {
        switch kind {
        case .valueFile, .missingFile: return try damageFile(folder, isMissing: kind == .missingFile)
        case .closedLog, .killedLog, .killedLogHead: return try damageLog(folder, kind)
        default: break
        }
        let url = folder.appendingPathComponent("store.sqlite")
        var bytes = [UInt8](try Data(contentsOf: url))
        let count = bytes.count / Self.pageSize
        if kind == .cut {
            let length = Int.random(in: 2..<count, using: &random)
            try url.cut(to: length * Self.pageSize)
            return ("to \(length) of \(count) pages", closed.entries)
        }
        let (page, offset) = place(kind, bytes, count)
        let index = (page - 1) * Self.pageSize + offset
        // All else hangs on the first page and on the inner pages of tables.
        let isReachable =
            [.freeListCount, .largestRoot].contains(kind) || page > 1 && [2, 10, 13].contains(bytes[index - offset])
        switch kind {
        case .page, .schemaPage, .emptyPage:
            let value: UInt8 = kind == .emptyPage ? 0 : .random(in: 1...255, using: &random)
            let start = page == 1 ? 100 : 0
            for place in start..<Self.pageSize { bytes[(page - 1) * Self.pageSize + place] = value }
        case .freeListCount, .largestRoot, .cellHead: bytes[index] ^= .random(in: 1...255, using: &random)
        default: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        }
        try Data(bytes).write(to: url)
        return ("page \(page), byte \(offset)", isReachable ? pages[page] ?? [] : closed.entries)
    }

    /// A page and a byte of it for a kind of damage.
    private mutating func place(_ kind: Kind, _ bytes: [UInt8], _ count: Int) -> (page: Int, offset: Int) {
        func type(_ page: Int) -> UInt8 { bytes[(page - 1) * Self.pageSize + (page == 1 ? 100 : 0)] }
        func word(_ page: Int, _ offset: Int) -> Int {
            let start = (page - 1) * Self.pageSize + offset
            return Int(bytes[start]) << 8 | Int(bytes[start + 1])
        }
        let all = Array(2...count)
        let wanted: [Int] =
            switch kind {
            case .header, .freeListCount, .largestRoot, .schemaPage: [1]
            case .pagePointer: all.filter { [2, 5].contains(type($0)) }
            case .indexCell: all.filter { type($0) == 10 }
            case .cacheRow: all.filter { type($0) == 13 && pages[$0] == nil && word($0, 3) > 0 }
            case .cell, .cellHead, .cellPointer: all.filter { type($0) == 13 && pages[$0] != nil }
            default: all
            }
        let page = wanted.randomElement(using: &random) ?? 2
        let cells = word(page, 3)
        switch kind {
        // Not the marks of another schema or another program, and not what a file of another form has.
        case .header: return (1, ([Int](0..<16) + [Int](21..<60) + [Int](72..<100)).randomElement(using: &random) ?? 0)
        case .freeListCount: return (1, Int.random(in: 36..<40, using: &random))
        case .largestRoot: return (1, Int.random(in: 52..<56, using: &random))
        case .pagePointer:
            let cell = Int.random(in: -1..<cells, using: &random)
            return (page, (cell < 0 ? 8 : word(page, 12 + 2 * cell)) + Int.random(in: 0..<4, using: &random))
        case .cellPointer: return (page, 8 + Int.random(in: 0..<max(2 * cells, 1), using: &random))
        case .cellHead:
            let cell = word(page, 8 + 2 * Int.random(in: 0..<max(cells, 1), using: &random))
            return (page, min(cell + Int.random(in: 2..<20, using: &random), Self.pageSize - 1))
        case .cell, .indexCell, .cacheRow:
            return (page, Int.random(in: min(word(page, 5), Self.pageSize - 1)..<Self.pageSize, using: &random))
        default: return (page, Int.random(in: 0..<Self.pageSize, using: &random))
        }
    }

    private mutating func damageLog(_ folder: URL, _ kind: Kind) throws -> (String, Set<SampleStore.Entry>) {
        let url = folder.appendingPathComponent("store.sqlite-wal")
        guard FileManager.default.fileExists(atPath: url.path) else { return ("none", []) }
        var bytes = [UInt8](try Data(contentsOf: url))
        guard !bytes.isEmpty else { return ("empty", []) }
        let end =
            kind == .killedLogHead ? 32 : kind == .killedLog ? (bytes.lastIndex { $0 != 0 } ?? 0) + 1 : bytes.count
        let index = Int.random(in: 0..<end, using: &random)
        bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        try Data(bytes).write(to: url)
        // The log ends before the damage, and what older rows name may be gone.
        return ("byte \(index)", kind.isOfLog ? closed.entries : [])
    }

    private mutating func damageFile(_ folder: URL, isMissing: Bool) throws -> (String, Set<SampleStore.Entry>) {
        let files = folder.appendingPathComponent("store.files")
        let names = try FileManager.default.subpathsOfDirectory(atPath: files.path).filter { $0.contains("/") }
        let url = files.appendingPathComponent(names.sorted().randomElement(using: &random) ?? "")
        // Whose it is, the first bytes tell.
        let words = String(decoding: try Data(contentsOf: url), as: UTF8.self).split(separator: " ").prefix(3)
        let name = words.first { $0.hasSuffix("first") || $0.hasSuffix("second") }.map(String.init) ?? ""
        let key = words.compactMap { Int($0) }.first ?? -1
        let owner = SampleStore.names.first { name.hasSuffix($0) } ?? ""
        if isMissing {
            try FileManager.default.removeItem(at: url)
        } else {
            var bytes = [UInt8](try Data(contentsOf: url))
            bytes[Int.random(in: bytes.indices, using: &random)] ^= 1
            try Data(bytes).write(to: url)
        }
        return ("\(owner) \(key)", [SampleStore.Entry(name: owner, key: key)])
    }

    // MARK: - Use

    private func outcome(_ folder: URL, _ kind: Kind, _ mayLose: Set<SampleStore.Entry>) -> [String] {
        var problems: [String] = []
        let url = folder.appendingPathComponent("store.sqlite")
        do {
            // Read-only first: it shows less, and changes nothing.
            var configuration = SampleStore.configuration
            configuration.access = .readOnly
            let reader = try CacheManager(url: url, configuration: configuration)
            if try !closed.check(reader).wrong.isEmpty { problems.append("wrong values, read-only") }
            try reader.close()
        } catch {
            if (error as? CacheError) == nil { problems.append("read-only: \(error)") }
        }
        do {
            let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
            try each(of: manager) { cache in
                for order in [EntryOrder.key, .written, .accessed, .size] {
                    for entry in cache.entries(orderedBy: order)
                    where entry.value != SampleStore.value(cache.name, entry.key) {
                        problems.append("\(entry.key) is wrong, in the order \(order)")
                    }
                }
                _ = try (cache.count, cache.sizeOnDisk, cache.removeExpired(), cache.trim(toCount: .max))
            }
            try manager.flush()
            try manager.maintain()
            _ = try manager.verify()
            let report = try manager.verify(repairing: true)
            let (missing, wrong) = try closed.check(manager)
            if !wrong.isEmpty { problems.append("wrong: \(wrong)") }
            let lost = missing.subtracting(mayLose)
            if !lost.isEmpty { problems.append("lost: \(lost.sorted { "\($0)" < "\($1)" }), \(report)") }
            let again = try manager.verify()
            if !again.isHealthy { problems.append("not healthy after a repair: \(again.problems.prefix(3))") }
            try each(of: manager) { cache in
                cache[7] = "again"
                if cache[7] != "again" { problems.append("what was written is not there") }
                try cache.removeAll()
                if try !cache.isEmpty { problems.append("not empty") }
            }
            try manager.close()
        } catch {
            problems.append("\(error)")
        }
        return problems
    }

    private func each(of manager: CacheManager, _ body: (Cache<Int, String>) throws -> Void) throws {
        for name in SampleStore.names { try body(try SampleStore.cache(manager, name)) }
    }
}
