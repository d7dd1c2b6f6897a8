import Foundation

/// Text and bytes.
///
/// Safety: A length is compared with the bytes that are left before a buffer is created from it. `isEqual` loads words
/// inside the `count` bytes that both of its callers have checked.
extension CBORReader {
    @inline(__always)
    mutating func string() throws(CBORFault) -> String {
        let start = offset
        let head = try head()
        guard head.major == CBORFormat.Major.text, !head.isIndefinite else {
            offset = start
            return try otherString()
        }
        let length = try length(head, at: start)
        let text = try Self.text(UnsafeRawBufferPointer(start: base + offset, count: length), at: start)
        offset &+= length
        return text
    }

    /// Reads text after tags, or in pieces.
    private mutating func otherString() throws(CBORFault) -> String {
        try skipTags()
        let start = offset
        guard try peek() & 0xE0 == CBORFormat.Major.text else { throw mismatch(at: start) }
        let head = try head()
        guard head.isIndefinite else {
            offset = start
            return try string()
        }
        var whole = ""
        try pieces(of: CBORFormat.Major.text) { (piece, start) throws(CBORFault) in
            // Each piece is text of its own: a character never spans two.
            whole += try Self.text(piece, at: start)
        }
        return whole
    }

    /// Returns the text of the bytes.
    ///
    /// `String(decoding:)` repairs bytes that are not UTF-8, so its result is compared with the bytes.
    @inline(__always)
    private static func text(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(CBORFault) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        let isSame = text.utf8.withContiguousStorageIfAvailable { utf8 in
            guard utf8.count == bytes.count else { return false }
            guard let ours = utf8.baseAddress, let theirs = bytes.baseAddress else { return true }
            return isEqual(ours, theirs, bytes.count)
        }
        guard isSame ?? text.utf8.elementsEqual(bytes) else { throw CBORFault(.invalidText, offset) }
        return text
    }

    /// Returns whether `count` bytes are equal, without a call of `memcmp`, since they are few.
    @inline(__always)
    static func isEqual(_ one: UnsafeRawPointer, _ other: UnsafeRawPointer, _ count: Int) -> Bool {
        if count >= 8 {
            guard count <= 64 else { return memcmp(one, other, count) == 0 }
            var offset = 0
            while offset &+ 8 <= count {
                if load(one, offset, UInt64.self) != load(other, offset, UInt64.self) { return false }
                offset &+= 8
            }
            return load(one, count &- 8, UInt64.self) == load(other, count &- 8, UInt64.self)
        }
        if count >= 4 {
            return load(one, 0, UInt32.self) == load(other, 0, UInt32.self)
                && load(one, count &- 4, UInt32.self) == load(other, count &- 4, UInt32.self)
        }
        for offset in 0..<count where load(one, offset, UInt8.self) != load(other, offset, UInt8.self) { return false }
        return true
    }

    @inline(__always)
    private static func load<Number: FixedWidthInteger>(
        _ base: UnsafeRawPointer, _ offset: Int, _ type: Number.Type
    ) -> Number {
        base.loadUnaligned(fromByteOffset: offset, as: type)
    }

    /// Reads a byte string, or an array of numbers that are bytes.
    mutating func bytes<Bytes: RangeReplaceableCollection>(as type: Bytes.Type) throws(CBORFault) -> Bytes
    where Bytes.Element == UInt8 {
        try skipTags()
        let start = offset
        let head = try head()
        switch head.major {
        case CBORFormat.Major.bytes where !head.isIndefinite:
            let length = try length(head, at: start)
            defer { offset += length }
            return Bytes(UnsafeRawBufferPointer(start: base + offset, count: length))
        case CBORFormat.Major.bytes:
            var whole = Bytes()
            try pieces(of: CBORFormat.Major.bytes) { (piece, _) throws(CBORFault) in whole.append(contentsOf: piece) }
            return whole
        case CBORFormat.Major.array:
            offset = start
            var whole = Bytes()
            try elements { (reader: inout CBORReader) throws(CBORFault) in whole.append(try reader.integer(UInt8.self))
            }
            return whole
        default: throw mismatch(at: start)
        }
    }

    /// Calls `body` with each piece of a string of indefinite length, and with the offset of the piece.
    private mutating func pieces(
        of major: UInt8, _ body: (UnsafeRawBufferPointer, Int) throws(CBORFault) -> Void
    ) throws(CBORFault) {
        while try !skipStop() {
            let start = offset
            let head = try head()
            guard head.major == major, !head.isIndefinite else { throw CBORFault(.wrongChunk, start) }
            let length = try length(head, at: start)
            try body(UnsafeRawBufferPointer(start: base + offset, count: length), start)
            offset += length
        }
    }
}
