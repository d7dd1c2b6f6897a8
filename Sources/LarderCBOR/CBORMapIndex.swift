import Foundation

/// Where the pairs of one map are: made when a key is not where it was expected, and to see that none is there twice.
struct CBORMapIndex {
    struct Entry {
        var key: Int
        var value: Int
        /// Differs for most keys that differ.
        var print: UInt64
    }

    private var entries: [Entry] = []
    /// The places of the entries in the order of their prints; only where there are many.
    private var order: [Int32] = []
    /// Where the next key is expected.
    private var next = 0
    /// A bit for each print, where there are few: most keys that are not there are told by it.
    private var mask: UInt64 = .max
    /// Where the map ends.
    private(set) var end = 0

    /// With more pairs than this the prints are those of a seeded hash, and sorted: nobody can choose keys that meet.
    private static let small = 32

    /// Reads the pairs from `reader` on, `count` of them, or up to the stop code if that is negative.
    mutating func build(_ reader: CBORReader, count: Int) throws(CBORFault) {
        var reader = reader
        entries.removeAll(keepingCapacity: true)
        order.removeAll(keepingCapacity: true)
        next = 0
        while entries.count != count {
            if count < 0, try reader.skipStop() { break }
            let key = reader.offset
            try reader.skip()
            let value = reader.offset
            entries.append(Entry(key: key, value: value, print: reader.print(of: key..<value)))
            try reader.skip()
        }
        end = reader.offset
        try entries.count <= Self.small ? checkFew(reader) : checkMany(reader)
    }

    private static func bit(_ print: UInt64) -> UInt64 {
        1 << ((print &* 0x9E37_79B9_7F4A_7C15) >> 58)
    }

    private mutating func checkFew(_ reader: CBORReader) throws(CBORFault) {
        // A bit for each print: only where two meet is there anything to compare.
        var seen: UInt64 = 0
        for index in entries.indices {
            let entry = entries[index]
            let bit = Self.bit(entry.print)
            if seen & bit != 0 {
                for other in entries[..<index]
                where other.print == entry.print && reader.isSameKey(other.key, entry.key) {
                    throw CBORFault(.duplicateKey, entry.key)
                }
            }
            seen |= bit
        }
        mask = seen
    }

    private mutating func checkMany(_ reader: CBORReader) throws(CBORFault) {
        mask = .max
        for index in entries.indices {
            let entry = entries[index]
            entries[index].print = reader.hash(of: entry.key..<entry.value)
        }
        order = entries.indices.map { Int32(truncatingIfNeeded: $0) }
        order.sort { entries[Int($0)].print < entries[Int($1)].print }
        for (left, right) in zip(order, order.dropFirst()) {
            let (one, other) = (entries[Int(left)], entries[Int(right)])
            if one.print == other.print, reader.isSameKey(one.key, other.key) {
                throw CBORFault(.duplicateKey, max(one.key, other.key))
            }
        }
    }

    // MARK: Looking up

    /// The pair whose key is `text`.
    mutating func find(_ text: String, _ reader: CBORReader) -> Entry? {
        let print = entries.count <= Self.small ? CBORReader.print(of: text) : CBORReader.hash(of: text)
        return find(print) { reader.matchKey(text, at: $0) != nil }
    }

    /// The pair whose key is `number`.
    mutating func find(_ number: Int, _ reader: CBORReader) -> Entry? {
        let print = entries.count <= Self.small ? CBORReader.print(of: number) : CBORReader.hash(of: number)
        return find(print) { reader.at($0).number == number }
    }

    /// The pair with this print whose key, at the offset given, matches: most often the one behind that found last.
    @inline(__always)
    private mutating func find(_ print: UInt64, _ matches: (Int) -> Bool) -> Entry? {
        if mask & Self.bit(print) == 0 { return nil }
        if next < entries.count, entries[next].print == print, matches(entries[next].key) {
            next += 1
            return entries[next - 1]
        }
        if !order.isEmpty { return findSorted(print, matches) }
        for index in entries.indices where entries[index].print == print && matches(entries[index].key) {
            next = index + 1
            return entries[index]
        }
        return nil
    }

    private mutating func findSorted(_ print: UInt64, _ matches: (Int) -> Bool) -> Entry? {
        var low = 0
        var high = order.count
        while low < high {
            let middle = (low + high) / 2
            if entries[Int(order[middle])].print < print { low = middle + 1 } else { high = middle }
        }
        while low < order.count, entries[Int(order[low])].print == print {
            let index = Int(order[low])
            if matches(entries[index].key) {
                next = index + 1
                return entries[index]
            }
            low += 1
        }
        return nil
    }

    /// The keys that `type` has a form for, in the order of the map.
    func keys<Key: CodingKey>(_ type: Key.Type, _ reader: CBORReader) -> [Key] {
        entries.compactMap { entry in
            var reader = reader.at(entry.key)
            if let number = reader.number { return Key(intValue: number) }
            return reader.textIfAny().flatMap { Key(stringValue: $0) }
        }
    }
}

extension CBORReader {
    /// Where the value begins, if the key at `offset` is `text`.
    @inline(__always)
    func matchKey(_ text: String, at offset: Int) -> Int? {
        let match: Int?? = text.utf8.withContiguousStorageIfAvailable { utf8 in
            let length = utf8.count
            guard length < 24 else { return matchLongKey(utf8, at: offset) }
            guard length < count &- offset,
                base.load(fromByteOffset: offset, as: UInt8.self) == CBORFormat.Major.text | UInt8(length)
            else { return nil }
            guard let start = utf8.baseAddress else { return offset &+ 1 }
            return Self.isEqual(start, base + offset + 1, length) ? offset &+ 1 &+ length : nil
        }
        if let match, let value = match { return value }
        return matchOtherKey(text, at: offset)
    }

    private func matchLongKey(_ utf8: UnsafeBufferPointer<UInt8>, at offset: Int) -> Int? {
        var reader = at(offset)
        do throws(CBORFault) {
            let head = try reader.head()
            guard head.major == CBORFormat.Major.text, !head.isIndefinite, head.number == UInt64(utf8.count),
                try reader.length(head, at: offset) == utf8.count, let start = utf8.baseAddress
            else { return nil }
            return memcmp(start, base + reader.offset, utf8.count) == 0 ? reader.offset + utf8.count : nil
        } catch {
            return nil
        }
    }

    /// A key behind a tag, in pieces, or with a longer head than it needs.
    @inline(__always)
    private func matchOtherKey(_ text: String, at offset: Int) -> Int? {
        guard offset < count else { return nil }
        let first = base.load(fromByteOffset: offset, as: UInt8.self)
        // Most often: plain text, but another.
        if first & 0xE0 == CBORFormat.Major.text, first & 0x1F < 24 { return nil }
        return matchSlowly(text, first, at: offset)
    }

    @inline(never)
    private func matchSlowly(_ text: String, _ first: UInt8, at offset: Int) -> Int? {
        guard first & 0xE0 == CBORFormat.Major.text || first & 0xE0 == CBORFormat.Major.tag else { return nil }
        var reader = at(offset)
        guard let key = reader.textIfAny(), key.utf8.elementsEqual(text.utf8) else { return nil }
        return reader.offset
    }
}

extension CBORReader {
    var isAtStop: Bool { offset < count && base.load(fromByteOffset: offset, as: UInt8.self) == CBORFormat.stop }

    /// The integer that is next, if it is one.
    fileprivate var number: Int? {
        var reader = self
        do throws(CBORFault) {
            try reader.skipTags()
            let major = try reader.peek() & 0xE0
            guard major == CBORFormat.Major.unsigned || major == CBORFormat.Major.negative else { return nil }
            return try reader.integer(Int.self)
        } catch {
            return nil
        }
    }

    /// The key that is next, as a step of a path.
    var pathKey: CBORPathKey? {
        if let number { return CBORPathKey(number: number) }
        var reader = self
        return reader.textIfAny().map { CBORPathKey(text: $0) }
    }

    /// The text that is next, if it is text.
    fileprivate mutating func textIfAny() -> String? {
        do throws(CBORFault) { return try string() } catch { return nil }
    }

    /// A number that differs for most keys that differ, and is the same for one key however it is encoded.
    @inline(__always)
    fileprivate func print(of range: Range<Int>) -> UInt64 {
        let first = base.load(fromByteOffset: range.lowerBound, as: UInt8.self)
        if first & 0xE0 == CBORFormat.Major.text, first & 0x1F < 24 {
            return Self.print(UnsafeRawBufferPointer(start: base + range.lowerBound + 1, count: range.count - 1))
        }
        return hash(of: range, Self.print)
    }

    /// The last eight bytes, and the length where there are fewer.
    @inline(__always)
    private static func print(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        let count = bytes.count
        if count >= 8 { return bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self) }
        var print = UInt64(count)
        for index in 0..<count { print = print << 8 | UInt64(bytes[index]) }
        return print
    }

    fileprivate static func print(of text: String) -> UInt64 {
        let print = text.utf8.withContiguousStorageIfAvailable { Self.print(UnsafeRawBufferPointer($0)) }
        if let print { return print }
        var text = text
        return text.withUTF8 { Self.print(UnsafeRawBufferPointer($0)) }
    }

    fileprivate static func print(of number: Int) -> UInt64 {
        withUnsafeBytes(of: number) { print($0) }
    }

    /// A seeded hash of the key in `range`, the same for one key however it is encoded.
    fileprivate func hash(of range: Range<Int>) -> UInt64 {
        hash(of: range, Self.hash)
    }

    private func hash(of range: Range<Int>, _ hash: (UnsafeRawBufferPointer) -> UInt64) -> UInt64 {
        var reader = self
        reader.offset = range.lowerBound
        if let number = reader.number { return withUnsafeBytes(of: number, hash) }
        if var text = reader.textIfAny() { return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) } }
        return hash(UnsafeRawBufferPointer(start: base + range.lowerBound, count: range.count))
    }

    fileprivate static func hash(of text: String) -> UInt64 {
        var text = text
        return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    }

    fileprivate static func hash(of number: Int) -> UInt64 {
        withUnsafeBytes(of: number) { hash($0) }
    }

    private static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(bytes: bytes)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// Whether the keys at two offsets are one: the same text, the same number, else the same bytes.
    fileprivate func isSameKey(_ one: Int, _ other: Int) -> Bool {
        var (left, right) = (self, self)
        left.offset = one
        right.offset = other
        if let leftNumber = left.number { return leftNumber == right.number }
        let (leftText, rightText) = (left.textIfAny(), right.textIfAny())
        if let leftText, let rightText { return leftText.utf8.elementsEqual(rightText.utf8) }
        if leftText != nil || rightText != nil { return false }
        do throws(CBORFault) {
            try left.skip()
            try right.skip()
        } catch {
            return false
        }
        guard left.offset - one == right.offset - other else { return false }
        return memcmp(base + one, base + other, left.offset - one) == 0
    }
}
