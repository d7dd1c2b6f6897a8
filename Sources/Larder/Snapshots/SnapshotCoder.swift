internal import Foundation
internal import LarderStore

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
        do { return "for key \(try decoder.decode(SnapshotItemKey<Key>.self, from: payload).key)" } catch { return nil }
    }
}
