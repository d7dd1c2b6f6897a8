internal import Foundation

/// A part of a snapshot in its file: each is found, and known to be whole, without the others.
///
/// A record is a CBOR array of a mark (8 bytes), a checksum (64 bits) and the length and bytes of its payload. All
/// records of one file but the first have the same mark, chosen at random when it is written. So if a record is
/// damaged, the next one can be found, and the contents of a caller's value, even another snapshot, are never taken
/// for a record.
///
/// Safety: The payload is a part of the caller's file and is used while that is valid. Offsets and lengths are
/// compared with the size of the file before any byte is read.
struct SnapshotRecord {
    /// The offset at which the record begins.
    let offset: Int
    /// The bytes of the payload.
    let payload: UnsafeRawBufferPointer
    private let mark: UInt64
    private let checksum: UInt64

    var end: Int { offset + Self.headLength + payload.count }

    private static let prefixLength = 10
    private static let headLength = prefixLength + 9 + 9

    /// The bytes of a record.
    static func bytes(_ payload: Data, mark: UInt64) -> Data {
        var bytes = Data(capacity: headLength + payload.count)
        func append(_ number: UInt64) { withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) } }
        bytes.append(CBORFormat.Major.array | 3)
        bytes.append(CBORFormat.Major.bytes | 8)
        append(mark)
        bytes.append(CBORFormat.Major.unsigned | 27)
        append(payload.withUnsafeBytes { Checksum.xxh3($0, seed: mark) })
        bytes.append(CBORFormat.Major.bytes | 27)
        append(UInt64(payload.count))
        bytes.append(payload)
        return bytes
    }

    /// Creates the record at `offset`, if one begins there; ``isWhole`` indicates whether it is undamaged.
    init?(in file: UnsafeRawBufferPointer, at offset: Int, mark: UInt64) {
        guard file.count - offset >= Self.headLength, Self.begins(in: file, at: offset, mark: mark) else { return nil }
        func number(at place: Int) -> UInt64 {
            UInt64(bigEndian: file.loadUnaligned(fromByteOffset: offset + place, as: UInt64.self))
        }
        guard file[offset + 10] == CBORFormat.Major.unsigned | 27, file[offset + 19] == CBORFormat.Major.bytes | 27,
            let length = Int(exactly: number(at: 20)), length <= file.count - offset - Self.headLength
        else { return nil }
        self.offset = offset
        self.mark = mark
        checksum = number(at: 11)
        let start = offset + Self.headLength
        payload = UnsafeRawBufferPointer(rebasing: file[start..<start + length])
    }

    /// A Boolean value that indicates whether its bytes are the written ones.
    var isWhole: Bool { checksum == Checksum.xxh3(payload, seed: mark) }

    /// Returns the offset of the next record, or the end of the file.
    static func next(in file: UnsafeRawBufferPointer, from offset: Int, mark: UInt64) -> Int {
        var place = offset
        while place < file.count && !begins(in: file, at: place, mark: mark) { place += 1 }
        return place
    }

    private static func begins(in file: UnsafeRawBufferPointer, at offset: Int, mark: UInt64) -> Bool {
        guard file.count - offset >= prefixLength, file[offset] == CBORFormat.Major.array | 3,
            file[offset + 1] == CBORFormat.Major.bytes | 8
        else { return false }
        return UInt64(bigEndian: file.loadUnaligned(fromByteOffset: offset + 2, as: UInt64.self)) == mark
    }
}
