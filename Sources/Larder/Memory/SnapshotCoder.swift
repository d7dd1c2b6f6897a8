internal import Foundation

/// An entry in a snapshot.
struct SnapshotItem<Key, Value> {
    var key: Key
    var value: Value
    var cost: Int
    /// When its age began, in milliseconds since 1970; nil where the cache had no age.
    var start: Int64?
}

extension SnapshotItem: Codable where Key: Codable, Value: Codable {
    private enum CodingKeys: String, CodingKey {
        case key = "k"
        case value = "v"
        case cost = "c"
        case start = "w"
    }
}

/// The text of a snapshot: a line that names the format and the types, then one line an item.
///
/// A line is its checksum and an item as JSON, which never holds a line break; so what is damaged costs one item.
struct SnapshotCoder<Key: Codable, Value: Codable> {
    /// Why one line could not be used.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()

    init() {
        // Numbers JSON has no word for.
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    }

    private static var magic: String { "Larder memory snapshot 1" }

    var header: Data { Data("\(Self.magic)\t\(Key.self)\t\(Value.self)\n".utf8) }

    func check(header line: Data, of url: URL) throws(CacheError) {
        let fields = String(decoding: line, as: UTF8.self).split(separator: "\t", omittingEmptySubsequences: false)
        guard fields.first == Self.magic[...], fields.count == 3 else {
            throw CacheError(
                .foreignFile, "\(url.path) is not a snapshot of a memory cache, or not one this release can read.")
        }
        guard fields[1] == "\(Key.self)", fields[2] == "\(Value.self)" else {
            throw CacheError(
                .typeMismatch,
                "The snapshot \(url.path) holds \(fields[2]) by \(fields[1]), not \(Value.self) by \(Key.self).")
        }
    }

    func line(for item: SnapshotItem<Key, Value>) -> Result<Data, Failure> {
        Result {
            let json = try encoder.encode(item)
            return Data(Self.checksum(of: json).utf8) + json + [UInt8(ascii: "\n")]
        }.mapError { Failure(description: "\($0)") }
    }

    func item(in line: Data) -> Result<SnapshotItem<Key, Value>, Failure> {
        let json = line.dropFirst(16)
        guard String(decoding: line.prefix(16), as: UTF8.self) == Self.checksum(of: json) else {
            return .failure(Failure(description: "its checksum does not fit."))
        }
        return Result { try decoder.decode(SnapshotItem<Key, Value>.self, from: json) }
            .mapError { Failure(description: "\($0)") }
    }

    /// FNV-1a, 64 bits, as 16 hex digits: it finds accidents, and is not proof against forgery.
    private static func checksum(of bytes: Data) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
