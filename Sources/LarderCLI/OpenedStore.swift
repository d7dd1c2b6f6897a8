internal import Foundation
internal import Larder
internal import LarderStore

/// A store that is looked at.
struct OpenedStore {
    let store: Store
    let path: String
    let now: Int64

    /// Opens a store by its path or its name; nothing on the disk changes.
    init(_ name: String, _ arguments: Arguments) throws {
        let path = try Self.path(of: name)
        var options = Store.Options()
        (options.isReadOnly, options.recovery, options.runsUpkeep) = (true, .fail, false)
        let isRedacted = arguments.has("--redact")
        options.report = { event in
            guard case .damagedEntry(let cache, let key) = event else { return }
            Output.complain("An entry of “\(cache)” is damaged\(isRedacted ? "" : ": \(key)"). It is left out.")
        }
        if access(path, R_OK) != 0 && errno == EACCES { throw Failure(77, "You may not read \(path).") }
        (store, self.path) = (try Store.open(path, options), path)
        if arguments.isChange { try store.requireNewest() }
        now = try arguments.moment("--at") ?? store.time.now()
    }

    static func path(of name: String) throws -> String {
        let file = URL(fileURLWithPath: name).path
        if isFile(file) { return file }
        if name.contains("/") { throw Failure(66, "There is no store at \(file).") }
        let path = try cachesFolder() + "/\(name).sqlite"
        if isFile(path) { return path }
        throw Failure(
            66, "There is no store named “\(name)”, neither here nor as \(path). “larder ls” lists those there are.")
    }

    fileprivate static func isFile(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && !isFolder.boolValue
    }

    /// Whether a path leads to a file that is no device and no pipe.
    static func isRegularFile(_ path: String) -> Bool {
        let real = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        do {
            return try FileManager.default.attributesOfItem(atPath: real)[.type] as? FileAttributeType == .typeRegular
        } catch {
            return false
        }
    }

    /// The path of a file, whether it is there or not, without symbolic links.
    static func realPath(_ path: String) -> String {
        let url = URL(fileURLWithPath: path).resolvingSymlinksInPath()
        let folder = url.deletingLastPathComponent().resolvingSymlinksInPath().path
        return folder + "/" + url.lastPathComponent
    }

    /// The folder of the stores that have a name.
    static func cachesFolder() throws(Failure) -> String {
        do throws(CacheError) { return try CachesFolder.path() } catch { throw Failure(69, error.message) }
    }

    /// What the tables of the store say, with the activity of ninety days.
    func look(counts: Bool = true) throws -> StoreLook {
        try store.look(activityOf: 90, until: now, counts: counts)
    }

    /// The bytes of the files of the store, by what they are.
    var files: (database: Int64, log: Int64, values: Int64, valueCount: Int, ballast: Int64) {
        let base = ValueFiles.folderToRead(of: path)
        var (values, count) = (Int64(0), 0)
        for name in Self.names(in: base) where FileName.isOwn(name) {
            values = values.addingSaturated(Self.size(base + "/" + name))
            count += 1
        }
        return (Self.size(path), Self.size(path + "-wal"), values, count, Self.size(path + ".ballast"))
    }

    static func names(in folder: String) -> [String] {
        do { return try FileManager.default.contentsOfDirectory(atPath: folder).sorted() } catch { return [] }
    }

    static func size(_ path: String) -> Int64 {
        do {
            return Int64(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0)
        } catch {
            return 0
        }
    }

    /// The other processes that have a database open, as far as this one may see: `myapp (4821)`; nil where the system does not tell.
    static func users(of path: String) -> [String]? {
        guard FileManager.default.fileExists(atPath: "/proc/self/fd") else { return nil }
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        return names(in: "/proc").compactMap { process in
            guard Int32(process).map({ $0 != getpid() }) == true else { return nil }
            let files = "/proc/\(process)/fd"
            guard names(in: files).contains(where: { destination(of: "\(files)/\($0)") == target }) else { return nil }
            let program = destination(of: "/proc/\(process)/exe") ?? "a program"
            return Text.escaped(URL(fileURLWithPath: program).lastPathComponent) + " (\(process))"
        }
    }

    private static func destination(of link: String) -> String? {
        do { return try FileManager.default.destinationOfSymbolicLink(atPath: link) } catch { return nil }
    }

    /// The rows of a cache that the store has.
    func cache(_ name: String) throws -> OpenedCache {
        let look = try look(counts: false)
        guard let cache = look.caches.first(where: { ExactName($0.declaration.name) == ExactName(name) }) else {
            let names = look.caches.map { Text.escaped($0.declaration.name) }.joined(separator: ", ")
            throw Failure(
                66, "The store has no cache “\(Text.escaped(name))”. It has: \(names.isEmpty ? "none" : names).")
        }
        return OpenedCache(look: cache, rows: try store.open(cache.declaration), of: self)
    }
}

/// A cache that is looked at.
struct OpenedCache {
    let look: CacheLook
    let rows: CacheRows
    let now: Int64
    private let path: String

    init(look: CacheLook, rows: CacheRows, of store: OpenedStore) {
        (self.look, self.rows, now, path) = (look, rows, store.now, store.path)
    }

    /// Throws if what was listed is not all there was: the cache was purged, or the file moved or deleted.
    func requireEnd() throws {
        try rows.requireCurrent()
        if OpenedStore.isFile(path) { return }
        throw Failure(69, "\(path) was moved or deleted while it was read.")
    }

    /// Calls `body` for each header in the order of keys, a page at a time, until it returns false.
    func forEachHeader(_ range: KeyRange = KeyRange(), _ body: (EntryHeader) throws -> Bool) throws {
        var last: PagePosition?
        repeat {
            let page = try rows.headers(range, after: last, limit: 1024, withAccess: true)
            for header in page.rows { if try !body(header) { return } }
            last = page.next
        } while last != nil
        try requireEnd()
    }

    /// The key that a word means.
    func key(_ word: String, _ arguments: Arguments) throws -> StoredKey {
        if arguments.has("--text") { return .text(word.precomposedStringWithCanonicalMapping) }
        if arguments.has("--hex") {
            guard let bytes = Text.bytes(ofHexadecimal: word) else {
                throw Failure.usage("“\(word)” is no row of hexadecimal digits.")
            }
            return .blob(bytes)
        }
        guard let number = Int64(word) else {
            if arguments.has("--integer") { throw Failure.usage("“\(word)” is no integer.") }
            return .text(word.precomposedStringWithCanonicalMapping)
        }
        if arguments.has("--integer") { return .integer(number) }
        let found = try [StoredKey.integer(number), .text(word)].filter { try rows.header($0) != nil }
        if found.count == 2 {
            throw Failure.usage("The cache has the number \(word) and the text “\(word)”. Add --integer or --text.")
        }
        return found.first ?? .integer(number)
    }
}

extension StoredKey {
    /// The key for people, or a hash of it.
    func text(_ arguments: Arguments) -> String {
        if arguments.has("--redact") { return "key-" + hash }
        switch self {
        case .integer(let number): return "\(number)"
        case .text(let text): return Text.escaped(text)
        case .blob(let bytes): return CBORText.text(of: bytes) ?? "h'\(Text.hexadecimal(bytes))'"
        }
    }

    /// The key for programs.
    func json(_ arguments: Arguments) -> [String: Any] {
        if arguments.has("--redact") { return ["hash": hash] }
        switch self {
        case .integer(let number): return ["integer": number]
        case .text(let text): return ["text": text]
        case .blob(let bytes): return ["cbor": Text.hexadecimal(bytes)]
        }
    }

    /// FNV-1a: the same for the same key in every report.
    private var hash: String {
        let bytes: [UInt8] =
            switch self {
            case .integer(let number): Array("i\(number)".utf8)
            case .text(let text): Array("t\(text)".utf8)
            case .blob(let bytes): [98] + bytes
            }
        let hash = bytes.reduce(14_695_981_039_346_656_037 as UInt64) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
        return String(hash, radix: 16)
    }
}

extension AgeRule {
    /// The rule for programs.
    var json: [String: Any] {
        switch self {
        case .unlimited: ["kind": "unlimited"]
        case .sinceWrite(let age): ["kind": "sinceWrite", "milliseconds": age]
        case .jittered(let age, let thousandths):
            ["kind": "jittered", "milliseconds": age, "share": Double(thousandths) / 1000]
        case .sinceAccess(let age): ["kind": "sinceAccess", "milliseconds": age]
        case .until(let end): ["kind": "until", "moment": Text.moment(end)]
        }
    }

    /// The rule for people.
    var text: String {
        switch self {
        case .unlimited: "unlimited"
        case .sinceWrite(let age): Text.duration(age)
        case .jittered(let age, let thousandths): Text.duration(age) + ", up to \(Double(thousandths) / 10) % earlier"
        case .sinceAccess(let age): Text.duration(age) + " since access"
        case .until(let end): "until " + Text.moment(end)
        }
    }
}

extension Arguments {
    /// The store that the first word names, opened for reading.
    func store() throws -> OpenedStore { try OpenedStore(self[0] ?? "", self) }

    /// The cache that the first two words name.
    func cache() throws -> OpenedCache { try store().cache(self[1] ?? "") }
}
