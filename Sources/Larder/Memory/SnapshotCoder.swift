internal import Foundation

/// The bytes of a snapshot: records of CBOR, the first with what the others hold, then one for each entry.
///
/// All of it is a sequence of CBOR items (RFC 8742), so any reader of CBOR can look at it.
///
/// Safety: The file is mapped or read by the caller and valid for the time of the call. Payloads are decoded inside
/// it, and what is decoded is a copy.
struct SnapshotCoder<Key: Codable, Value: Codable> {
    /// What the first record holds.
    private struct Head: Codable {
        var format = 1
        var key = Self.name(of: Key.self)
        var value = Self.name(of: Value.self)
        /// The mark of the records behind this one.
        var mark = UInt64.random(in: .min ... .max)

        /// A type with its module and what encloses it.
        ///
        /// By themselves `A.Item` and `B.Item` are both `Item`. Private types are told apart by an address, which is
        /// another one in each process, and is left out.
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

    /// Calls `body` for each record behind the first, and once for each stretch that is damaged.
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
                // No damage makes of a file heads without end, each of which claims what the others do; a forger might.
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

    /// The key of a record whose value does not decode, or where it stands.
    private func name(of record: SnapshotRecord) -> String {
        do {
            return "for key \(try decoder.decode(SnapshotItemKey<Key>.self, from: record.payload).key)"
        } catch {
            return "at byte \(record.offset)"
        }
    }
}
