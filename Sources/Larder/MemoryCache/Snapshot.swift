internal import Foundation
internal import LarderStore

/// The file of a snapshot, which is replaced in one step.
///
/// The new file is written next to the old one under a name of its own: `.larder-`, 16 digits for the name of the
/// snapshot, and a UUID. If the process dies, it is left. The next save to the same place deletes those of an hour ago.
enum SnapshotFile {
    private static let longestSave: Int64 = 3_600_000

    /// The path by which a snapshot is known, however it is named.
    static func path(of url: URL) -> String { url.resolvingSymlinksInPath().path }

    static func mayExist(_ url: URL) -> Bool {
        do { return try FileSystem.status(url.path) != nil } catch { return true }
    }

    /// Puts a file with these bytes in the place of what is at `url`, after they have reached the disk.
    static func replace(_ url: URL, with bytes: Data) throws(CacheError) {
        let folder = FileSystem.folder(of: url.path)
        let name = Data(url.lastPathComponent.utf8).withUnsafeBytes { Checksum.of($0) }
        let prefix = ".larder-\(name.digits)-"
        let path = "\(folder)/\(prefix)\(UUID().uuidString)"
        do {
            // If a file cannot be deleted, the next save tries again.
            do { try deleteAbandoned(prefix, in: folder) } catch {}
            try bytes.withUnsafeBytes { bytes throws(any Error) in
                _ = try FileSystem.write(bytes, path, oldSize: nil, syncs: true)
            }
            do {
                guard try FileSystem.rename(path, to: url.path) else {
                    throw FileError(number: ENOENT, call: "rename", path: path)
                }
            } catch {
                try FileSystem.delete(path)
                throw error
            }
            // The new name reaches the disk with the folder. If that cannot be synced, the old file is still whole.
            do { try FileSystem.sync(folder) } catch {}
        } catch {
            let failure = error as? FileError
            throw CacheError(
                failure?.isAboutRoom == true ? .storageFull : .storageUnavailable,
                "The snapshot \(url.path) cannot be written (\(failure?.description ?? "\(error)")). What was there before is"
                    + " untouched. Check that its folder exists and its permissions.")
        }
    }

    private static func deleteAbandoned(_ prefix: String, in folder: String) throws(FileError) {
        let now = SystemClock.now()
        for name in try FileSystem.names(in: folder) where name.hasPrefix(prefix) {
            let path = folder + "/" + name
            guard let status = try FileSystem.status(path), status.isFile else { continue }
            if now.subtractingSaturated(status.modifiedAt) > longestSave { try FileSystem.delete(path) }
        }
    }
}

/// The bytes of a snapshot: eight letters, then a record with the types, then one for each entry.
///
/// A record is the length of its payload and a checksum, 8 bytes each, and the payload in CBOR. If a record is damaged,
/// what follows it cannot be found.
struct SnapshotCoder<Key: Codable & Sendable, Value: Codable & Sendable> {
    /// The contents of the first record.
    private struct Head: Codable {
        var format = 3
        var key = Self.name(of: Key.self)
        var value = Self.name(of: Value.self)

        /// Returns the name of a type with its module and the enclosing types.
        ///
        /// Without these, `A.Item` and `B.Item` are both `Item`. Private types are distinguished by an address, which
        /// differs in each process and is left out.
        static func name(of type: Any.Type) -> String {
            String(reflecting: type).replacing(/\(unknown context at \$[0-9a-f]+\)\./, with: "")
        }
    }

    private static var letters: Data { Data("LarderMC".utf8) }

    private let encoder = CBOREncoder()
    private let decoder = CBORDecoder()

    // MARK: Writing

    /// The bytes before the first entry.
    func start(of url: URL) throws(CacheError) -> Data {
        do {
            var bytes = Self.letters
            try append(Head(), to: &bytes)
            return bytes
        } catch {
            throw CacheError(.encodingFailed, "The snapshot \(url.path) cannot be begun.", underlying: error)
        }
    }

    /// Appends the record of an entry.
    func append(_ item: some Encodable, to bytes: inout Data) throws {
        let payload = try encoder.encode(item)
        for number in [UInt64(payload.count), payload.withUnsafeBytes { Checksum.of($0) }] {
            withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
        }
        bytes.append(payload)
    }

    // MARK: Reading

    /// Calls `body` for each entry.
    ///
    /// - Parameter skipped: Called with a sentence about each entry that does not decode, and about a damaged rest.
    func forEachItem(
        in file: Data, of url: URL, skipped: (String) -> Void, _ body: (SnapshotItem<Key, Value>) -> Void
    ) throws(CacheError) {
        var rest = file[...]
        guard rest.starts(with: Self.letters) else { throw Self.foreign(url) }
        rest = rest.dropFirst(Self.letters.count)
        guard let head = Self.payload(&rest) else { throw Self.foreign(url) }
        try check(head, of: url)
        while !rest.isEmpty {
            let offset = rest.startIndex - file.startIndex
            guard let payload = Self.payload(&rest) else {
                return skipped("The snapshot \(url.path) is damaged from byte \(offset) on, and the rest was skipped.")
            }
            do {
                body(try decoder.decode(SnapshotItem<Key, Value>.self, from: payload))
            } catch {
                let name = name(of: payload) ?? "at byte \(offset)"
                skipped(
                    "A part of the snapshot \(url.path) was skipped: the entry \(name) does not decode: \(error)")
            }
        }
    }

    /// Takes the payload of the next record; nil if it is damaged.
    private static func payload(_ rest: inout Data) -> Data? {
        func number(_ place: Int) -> UInt64 {
            rest.dropFirst(place).prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        guard rest.count >= 16, let count = Int(exactly: number(0)), count <= rest.count - 16 else { return nil }
        let payload = rest.dropFirst(16).prefix(count)
        guard payload.withUnsafeBytes({ Checksum.of($0) }) == number(8) else { return nil }
        rest = rest.dropFirst(16 + count)
        return payload
    }

    private static func foreign(_ url: URL) -> CacheError {
        CacheError(
            .foreignFile,
            "\(url.path) is not a snapshot of a memory cache, or its beginning is damaged. It was left as it is.")
    }

    private func check(_ payload: Data, of url: URL) throws(CacheError) {
        let (head, own): (Head, Head)
        do {
            (head, own) = (try decoder.decode(Head.self, from: payload), Head())
        } catch {
            throw CacheError(
                .foreignFile, "\(url.path) is a snapshot that this release cannot read.", underlying: error)
        }
        // Items of format 2 have no own ages.
        if head.format < 2 { throw Self.foreign(url) }
        guard head.format <= own.format else {
            throw CacheError(
                .newerSchema,
                "\(url.path) is a snapshot of format \(head.format); this release reads \(own.format). Update it.")
        }
        guard head.key == own.key, head.value == own.value else {
            throw CacheError(
                .typeMismatch,
                "The snapshot \(url.path) holds \(head.value) by \(head.key), not \(own.value) by \(own.key).")
        }
    }

    /// Returns the key of an entry whose value does not decode; nil if that does not decode either.
    private func name(of payload: Data) -> String? {
        do {
            return "for key \"\(try decoder.decode(SnapshotItemKey<Key>.self, from: payload).key)\""
        } catch {
            return nil
        }
    }
}

/// An entry in a snapshot.
struct SnapshotItem<Key: Sendable, Value: Sendable>: Sendable {
    var key: Key
    var value: Value
    var cost: Int
    /// The start of its age, in milliseconds since 1970; nil if the cache had no age.
    var start: Int64?
    /// Its own age, which it has in place of the cache's.
    var own: OwnAge?
}

/// An array of key, value and cost, and the start or the two numbers of an own age, where there are any.
extension SnapshotItem: Codable where Key: Codable, Value: Codable {
    func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try container.encode(key)
        try container.encode(value)
        try container.encode(cost)
        if let own {
            try container.encode(own.end)
            try container.encode(own.age)
        } else if let start {
            try container.encode(start)
        }
    }

    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        key = try container.decode(Key.self)
        value = try container.decode(Value.self)
        cost = try container.decode(Int.self)
        let moment = container.isAtEnd ? nil : try container.decode(Int64.self)
        let age = container.isAtEnd ? nil : try container.decode(Int64.self)
        if let moment, let age { own = OwnAge(end: moment, age: age) } else { start = moment }
    }
}

/// The key alone of an item whose value does not decode.
struct SnapshotItemKey<Key: Decodable>: Decodable {
    let key: Key

    init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        key = try container.decode(Key.self)
    }
}

extension UInt64 {
    /// The number as 16 hexadecimal digits.
    package var digits: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
