internal import Foundation
internal import LarderStore

/// Writes the entries of a file in one transaction, once all of its lines are found to be right.
func importEntries(_ arguments: Arguments) throws -> Int32 {
    let store = try OpenedStore(arguments[0] ?? "", arguments)
    let file = ExportedFile(path: arguments[1] ?? "")
    let caches = try store.look(counts: false).caches.map(\.declaration)
    var counts: [String: Int] = [:]
    try file.forEachEntry(of: caches) { cache, _, _ in counts[cache.name, default: 0] += 1 }
    let parts = counts.sorted { $0.key < $1.key }.map { "\(Text.number($0.value)) into “\(Text.escaped($0.key))”" }
    let text = parts.isEmpty ? "The file has no entry." : "Writes " + parts.joined(separator: ", ") + "."
    return try Change(of: store, arguments).perform(text + " Entries of the same keys are replaced.") {
        store in
        let rows = Dictionary(uniqueKeysWithValues: caches.map { ($0.name, store.found($0)) })
        var (count, accesses): (Int, [(CacheRows, RowStamp, Int64)]) = (0, [])
        try store.transaction { state in
            try file.forEachEntry(of: caches) { cache, entry, accessedAt in
                guard let rows = rows[cache.name] else { return }
                let outcome = try state.perform(.put([entry]), on: rows)
                count += outcome.rows.count
                if accessedAt > entry.writtenAt, let row = outcome.rows.first?.row {
                    accesses.append((rows, row, accessedAt))
                }
            }
        }
        for (rows, row, moment) in accesses { rows.noteAccess(to: row, at: moment) }
        return "Wrote \(Text.number(count)) entries."
    }
}

/// Lines of JSON, as “export” prints them.
private struct ExportedFile {
    let path: String

    /// Calls `body` for each line; throws if one is not of a cache that the store has.
    func forEachEntry(
        of caches: [CacheDeclaration], _ body: (CacheDeclaration, EntryWrite, _ accessedAt: Int64) throws -> Void
    ) throws {
        var number = 0
        try forEachLine { line in
            number += 1
            if line.isEmpty { return }
            do {
                let line = try ExportedLine(line)
                guard let cache = caches.first(where: { $0.name == line.cache }) else {
                    throw Wrong("the store has no cache “\(line.cache)”. Open it once with the program")
                }
                if cache.version != line.version || cache.codec != line.codec {
                    throw Wrong(
                        "the store has “\(cache.name)” in version \(cache.version) (\(cache.codec)), and the line in version"
                            + " \(line.version) (\(line.codec))")
                }
                let (entry, accessedAt) = try line.entry()
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
        guard let key, let writtenAt = moment("writtenAt") else { throw Wrong("its key or its time is missing") }
        var meta = RowMeta()
        meta.isPinned = fields["isPinned"] as? Bool ?? false
        meta.hasFixedEnd = fields["hasFixedEnd"] as? Bool ?? false
        meta.slidingAge = (fields["ownSlidingAge"] as? NSNumber)?.int64Value
        meta.cost = (fields["cost"] as? NSNumber)?.int64Value
        meta.extendedData = (fields["extendedData"] as? String).flatMap { Data(base64Encoded: $0) }
        meta.tags = fields["tags"] as? [String] ?? []
        let entry = EntryWrite(
            key: key, payload: payload, writtenAt: writtenAt, expiresAt: moment("ownEnd"), meta: meta)
        return (entry, moment("accessedAt") ?? writtenAt)
    }

    private var key: StoredKey? {
        guard let key = fields["key"] as? [String: Any] else { return nil }
        if let number = key["integer"] as? NSNumber { return .integer(number.int64Value) }
        if let text = key["text"] as? String { return .text(text) }
        return (key["cbor"] as? String).flatMap(Text.bytes(ofHexadecimal:)).map { .blob($0) }
    }

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
