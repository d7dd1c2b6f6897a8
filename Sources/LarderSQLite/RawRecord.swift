/// A row of a table or of an index as it is on its page.
package struct RawRecord: Sendable, Equatable {
    /// The page that has it.
    package let page: UInt32

    /// The row's number; nil in an index.
    package let rowID: Int64?

    package let values: [RawValue]
}

/// A stored value of whatever type.
package enum RawValue: Sendable, Equatable {
    case null
    case integer(Int64)
    case real(Double)
    case text([UInt8])
    case blob([UInt8])
}

extension RawRecord {
    /// The values of a record, by SQLite's documented format; nil where the bytes are none.
    static func values(_ bytes: [UInt8]) -> [RawValue]? {
        guard let (headerSize, start) = bytes.varint(at: 0), headerSize >= start, headerSize <= bytes.count else {
            return nil
        }
        var place = start
        var body = Int(headerSize)
        var values: [RawValue] = []
        while place < headerSize {
            guard let (type, next) = bytes.varint(at: place), next <= headerSize else { return nil }
            place = next
            guard let size = size(ofType: type), size <= bytes.count - body else { return nil }
            values.append(value(type, bytes[body..<body + size]))
            body += size
        }
        // A record has a value in every column, and nothing behind the last.
        return body == bytes.count ? values : nil
    }

    /// The row of a table's page that has the byte at `place`, if all of it is on the page.
    static func onPage(_ bytes: [UInt8], number: UInt32, around place: Int) -> RawRecord? {
        guard let page = TreePage(bytes, isFirst: number == 1), page.kind == .tableLeaf else { return nil }
        for cell in page.cells(in: bytes) where cell <= place {
            guard let (size, afterSize) = bytes.varint(at: cell), let (row, start) = bytes.varint(at: afterSize),
                size > 0, size <= Int64(Connection.pageSize - 35), start + Int(size) <= bytes.count,
                place < start + Int(size)
            else { continue }
            return values(Array(bytes[start..<start + Int(size)])).map {
                RawRecord(page: number, rowID: row, values: $0)
            }
        }
        return nil
    }

    /// Whether a record at `offset` of a page has so many columns, as far as its head is on the page.
    static func mayHave(_ columns: Int, _ page: [UInt8], at offset: Int, _ size: Int64) -> Bool {
        guard let (headerSize, start) = page.varint(at: offset), headerSize <= size else { return false }
        var (place, count) = (start, 0)
        while place - offset < headerSize {
            // The rest of the head is on another page.
            guard let (_, next) = page.varint(at: place) else { return true }
            (place, count) = (next, count + 1)
            if count > columns { return false }
        }
        return count == columns
    }

    private static func size(ofType type: Int64) -> Int? {
        switch type {
        case 0, 8, 9: 0
        case 1...4: Int(type)
        case 5: 6
        case 6, 7: 8
        case 12...: Int((type - 12) / 2)
        default: nil
        }
    }

    private static func value(_ type: Int64, _ bytes: ArraySlice<UInt8>) -> RawValue {
        switch type {
        case 0: .null
        case 8: .integer(0)
        case 9: .integer(1)
        case 1...6: .integer(bytes.signedNumber)
        case 7: .real(Double(bitPattern: UInt64(bitPattern: bytes.signedNumber)))
        default: type % 2 == 0 ? .blob(Array(bytes)) : .text(Array(bytes))
        }
    }
}

extension ArraySlice where Element == UInt8 {
    /// The number that these bytes are, at most eight, most significant first, with a sign.
    fileprivate var signedNumber: Int64 {
        let start = (first ?? 0) & 0x80 == 0 ? Int64(0) : -1
        return reduce(start) { $0 << 8 | Int64($1) }
    }
}

extension Array where Element == UInt8 {
    /// The number of variable length at `offset`, and where it ends.
    func varint(at offset: Int) -> (value: Int64, end: Int)? {
        var value: UInt64 = 0
        for index in 0..<9 {
            guard offset >= 0, offset + index < count else { return nil }
            let byte = self[offset + index]
            if index == 8 { return (Int64(bitPattern: value << 8 | UInt64(byte)), offset + 9) }
            value = value << 7 | UInt64(byte & 0x7F)
            if byte & 0x80 == 0 { return (Int64(bitPattern: value), offset + index + 1) }
        }
        return nil
    }
}
