internal import Foundation
internal import LarderStore

/// Writes the entries of a file in one transaction, once all of its lines are found to be right.
func importEntries(_ arguments: Arguments) throws -> Int32 {
    let store = try arguments.store()
    let file = try ExportedFile(path: arguments[1] ?? "", caches: try store.look(counts: false).caches)
    var counts: [ExactName: Int] = [:]
    try file.forEachEntry { cache, _, _ in counts[ExactName(cache.name), default: 0] += 1 }
    if counts.isEmpty {
        try Output.line("The file has no entry.")
        return 0
    }
    func sorted(_ counts: [ExactName: Int64], _ join: (String, String) -> String) -> String {
        counts.sorted { $0.key.text < $1.key.text }.map {
            join(Text.number($0.value), "“\(Text.escaped($0.key.text))”")
        }
        .joined(separator: ", ")
    }
    let text =
        "Writes \(sorted(counts.mapValues { Int64($0) }) { "\($0) into \($1)" }). Entries of the same keys are replaced,"
        + " limits hold, and other writers wait."
    return try Change(of: store, arguments).write(text) { store in
        var count = 0
        let rows = file.caches.mapValues { store.rows(of: $0) }
        try store.transaction { state in
            try file.forEachEntry { cache, entry, accessedAt in
                guard let rows = rows[ExactName(cache.name)] else { return }
                let outcome = try state.perform(.put([entry]), on: rows)
                count += outcome.rows.count
                if accessedAt > entry.writtenAt, let row = outcome.rows.first?.row {
                    try state.storeAccess(to: row, at: accessedAt)
                }
            }
        }
        let found = try rows.filter { counts[$0.key] != nil }.mapValues { try $0.totals().count }
        return "Wrote \(Text.number(count)) entries. Now there are \(sorted(found) { "\($0) in \($1)" })."
    }
}

/// Lines of JSON, as “export” prints them.
private struct ExportedFile {
    private let path: String
    let caches: [ExactName: CacheDeclaration]
    private let limits: [ExactName: Limits]

    /// Throws if the path is not that of a file, which can be read twice.
    init(path: String, caches: [CacheLook]) throws {
        guard OpenedStore.isRegularFile(path) else { throw Failure(66, "\(path) is no file that can be read twice.") }
        self.path = path
        let caches = Dictionary(caches.map { (ExactName($0.declaration.name), $0) }) { first, _ in first }
        (self.caches, limits) = (caches.mapValues(\.declaration), caches.mapValues(\.limits))
    }

    /// Calls `body` for each line; throws if one is not of a cache that the store has.
    func forEachEntry(_ body: (CacheDeclaration, EntryWrite, _ accessedAt: Int64) throws -> Void) throws {
        var number = 0
        try forEachLine { line in
            number += 1
            if line.isEmpty { return }
            do {
                let line = try ExportedLine(line)
                guard let cache = caches[ExactName(line.cache)] else {
                    throw Wrong("the store has no cache “\(line.cache)”. Open it once with the program")
                }
                if cache.version != line.version || cache.codec != line.codec {
                    throw Wrong(
                        "the store has “\(cache.name)” in version \(cache.version) (\(cache.codec)), and the line in version"
                            + " \(line.version) (\(line.codec))")
                }
                let (entry, accessedAt) = try line.entry()
                if entry.size > limits[ExactName(cache.name)]?.size ?? .max {
                    throw Wrong("the entry is larger than the size limit of “\(cache.name)”")
                }
                try body(cache, entry, accessedAt)
            } catch let wrong as Wrong {
                throw Failure(65, "\(path), line \(number): \(Text.escaped(wrong.what)). Nothing was changed.")
            }
        }
    }

    private func forEachLine(_ body: (Data) throws -> Void) throws {
        guard let file = FileHandle(forReadingAtPath: path) else { throw Failure(66, "\(path) cannot be read.") }
        defer { do { try file.close() } catch {} }
        var rest = Data()
        while let chunk = try file.read(upToCount: 1 << 20), !chunk.isEmpty {
            var start = chunk.startIndex
            while let end = chunk[start...].firstIndex(of: UInt8(ascii: "\n")) {
                try body(rest + chunk[start..<end])
                (rest, start) = (Data(), end + 1)
            }
            rest += chunk[start...]
        }
        try body(rest)
    }
}

/// What is wrong with a line.
private struct Wrong: Error {
    let what: String

    init(_ what: String) { self.what = what }
}

private struct ExportedLine {
    private let fields: [String: Any]
    let (cache, version, codec): (String, String, String)

    init(_ line: Data) throws {
        guard let fields = try Self.object(line), fields["format"] as? String == "larder.export/1",
            let cache = fields["cache"] as? String, let version = fields["version"] as? String,
            let codec = fields["codec"] as? String
        else { throw Wrong("it is no line of “larder export”") }
        (self.fields, self.cache, self.version, self.codec) = (fields, cache, version, codec)
    }

    private static func object(_ line: Data) throws -> [String: Any]? {
        do { return try JSONSerialization.jsonObject(with: line) as? [String: Any] } catch { return nil }
    }

    func entry() throws -> (entry: EntryWrite, accessedAt: Int64) {
        guard let payload = (fields["payload"] as? String).flatMap({ Data(base64Encoded: $0) }) else {
            throw Wrong("it has no payload; an export with --redact cannot be imported")
        }
        guard let key = try key, let writtenAt = moment("writtenAt") else {
            throw Wrong("its key or its time is missing")
        }
        var meta = RowMeta()
        let (ownEnd, slidingAge) = (moment("ownEnd"), integer(fields["ownSlidingAge"]))
        if (ownEnd == nil && !isNull("ownEnd")) || (slidingAge ?? -1 < 0 && !isNull("ownSlidingAge")) {
            throw Wrong("its own age is none")
        }
        meta.isPinned = fields["isPinned"] as? Bool ?? false
        meta.hasFixedEnd = fields["hasFixedEnd"] as? Bool ?? false
        (meta.slidingAge, meta.cost) = (slidingAge, integer(fields["cost"]))
        meta.refresh = integer(fields["refresh"]).map { RefreshNote(number: $0) }
        meta.extendedData = (fields["extendedData"] as? String).flatMap { Data(base64Encoded: $0) }
        let tags = fields["tags"] as? [String] ?? []
        if !tags.isEmpty { meta.tags = Set(tags.map(\.precomposedStringWithCanonicalMapping)).sorted() }
        let entry = EntryWrite(
            key: key, payload: payload, writtenAt: writtenAt, expiresAt: ownEnd, meta: meta)
        return (entry, moment("accessedAt") ?? writtenAt)
    }

    /// The key in the form in which a program looks for it.
    private var key: StoredKey? {
        get throws {
            guard let key = fields["key"] as? [String: Any] else { return nil }
            if let number = integer(key["integer"]) { return .integer(number) }
            if let text = key["text"] as? String { return .text(text.precomposedStringWithCanonicalMapping) }
            guard let bytes = (key["cbor"] as? String).flatMap(Text.bytes(ofHexadecimal:)) else { return nil }
            if CanonicalKey.isCanonical(bytes) { return .blob(bytes) }
            throw Wrong("its key is not CBOR as programs store it, and no program would find the entry")
        }
    }

    private func isNull(_ name: String) -> Bool { fields[name] == nil || fields[name] is NSNull }

    private func integer(_ value: Any?) -> Int64? { (value as? NSNumber).flatMap { Int64($0.stringValue) } }

    /// A moment as ``Text/moment(_:)`` prints it.
    private func moment(_ name: String) -> Int64? {
        guard let text = fields[name] as? String else { return nil }
        if let number = Int64(text) { return number }
        do {
            let date = try Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
            return Int64((date.timeIntervalSince1970 * 1000).rounded())
        } catch {
            return nil
        }
    }
}
