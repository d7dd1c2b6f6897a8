internal import Foundation

/// The bytes of a snapshot: records of CBOR, the first with the description of the others, then one for each entry.
///
/// All of it is a sequence of CBOR items (RFC 8742), so any reader of CBOR can look at it.
///
/// Safety: The file is mapped or read by the caller and valid for the time of the call. Payloads are decoded inside
/// the call, and a decoded value is a copy.
struct SnapshotCoder<Key: Codable, Value: Codable> {
    /// The contents of the first record.
    private struct Head: Codable {
        var format = 1
        var key = Self.name(of: Key.self)
        var value = Self.name(of: Value.self)
        /// The mark of the following records.
        var mark = UInt64.random(in: .min ... .max)

        /// Returns the name of a type with its module and the enclosing types.
        ///
        /// Without these, `A.Item` and `B.Item` are both `Item`. Private types are distinguished by an address, which
        /// differs in each process and is left out.
        static func name(of type: Any.Type) -> String {
            String(reflecting: type).replacing(/\(unknown context at \$[0-9a-f]+\)\./, with: "")
        }
    }

    /// A part of a file that holds no entry, for the reason given.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The mark of the first record, "LarderMC".
    private static var firstMark: UInt64 { 0x4C61_7264_6572_4D43 }

    private let encoder = CBOREncoder()
    private let decoder = CBORDecoder()
    private let head = Head()

    /// The first record.
    func start(of url: URL) throws(CacheError) -> Data {
        do {
            return SnapshotRecord.bytes(try encoder.encode(head), mark: Self.firstMark)
        } catch {
            throw CacheError(.encodingFailed, "The snapshot \(url.path) cannot be begun.", underlying: error)
        }
    }

    /// The record of an entry.
    func record(of item: SnapshotItem<Key, Value>) throws -> Data {
        SnapshotRecord.bytes(try encoder.encode(item), mark: head.mark)
    }

    /// Calls `body` for each record after the first, and once for each stretch that is damaged.
    func forEachItem(
        in file: UnsafeRawBufferPointer, of url: URL, _ body: (Result<SnapshotItem<Key, Value>, Failure>) -> Void
    ) throws(CacheError) {
        guard let first = SnapshotRecord(in: file, at: 0, mark: Self.firstMark), first.isWhole else {
            throw CacheError(
                .foreignFile,
                "\(url.path) is not a snapshot of a memory cache, or its beginning is damaged. It was left as it is.")
        }
        let mark = try mark(in: first, of: url)
        var offset = first.end
        var checkedInVain = 0
        while offset < file.count {
            let found = SnapshotRecord(in: file, at: offset, mark: mark)
            guard let record = found, record.isWhole else {
                checkedInVain += found?.payload.count ?? 0
                // Damage cannot create endless heads that each claim the bytes of the others, but a forger can.
                let next =
                    checkedInVain / 8 < file.count
                    ? SnapshotRecord.next(in: file, from: offset + 1, mark: mark) : file.count
                body(.failure(Failure(description: "its bytes \(offset) to \(next) are damaged.")))
                offset = next
                continue
            }
            offset = record.end
            body(item(in: record))
        }
    }

    private func mark(in record: SnapshotRecord, of url: URL) throws(CacheError) -> UInt64 {
        let head: Head
        do {
            head = try decoder.decode(Head.self, from: record.payload)
        } catch {
            throw CacheError(
                .foreignFile, "\(url.path) is a snapshot that this release cannot read.", underlying: error)
        }
        guard head.format == self.head.format else {
            throw CacheError(
                .newerSchema, "\(url.path) is a snapshot of format \(head.format); this release reads 1. Update it.")
        }
        guard head.key == self.head.key, head.value == self.head.value else {
            throw CacheError(
                .typeMismatch,
                "The snapshot \(url.path) holds \(head.value) by \(head.key), not \(self.head.value) by"
                    + " \(self.head.key).")
        }
        return head.mark
    }

    private func item(in record: SnapshotRecord) -> Result<SnapshotItem<Key, Value>, Failure> {
        do {
            return .success(try decoder.decode(SnapshotItem<Key, Value>.self, from: record.payload))
        } catch {
            return .failure(Failure(description: "the entry \(name(of: record)) does not decode: \(error)"))
        }
    }

    /// Returns the key of a record whose value does not decode, or its place in the file.
    private func name(of record: SnapshotRecord) -> String {
        do {
            return "for key \(try decoder.decode(SnapshotItemKey<Key>.self, from: record.payload).key)"
        } catch {
            return "at byte \(record.offset)"
        }
    }
}
