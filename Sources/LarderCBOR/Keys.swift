import Foundation

/// The keys of one map, each as a digest of its bytes.
///
/// Equal keys have equal digests. Different keys may have equal digests too, so a found digest is a reason to compare
/// keys, and a missing digest is exact.
///
/// Safety: A digest reads `count` bytes that its caller has. They are a key that was just written, a key that a reader
/// has checked, or the text of a string.
struct CBORKeySet {
    /// One bit for each digest.
    private var filter: UInt64 = 0
    /// The digests; only the first `count` are in use.
    private var few: [UInt64] = []
    private var count = 0
    /// All digests, if there are too many for `few`.
    private var many: Set<UInt64> = []
    private static let mostFew = 32

    @inline(__always)
    mutating func removeAll() {
        filter = 0
        count = 0
        if !many.isEmpty { many = [] }
    }

    /// Adds a key by its digest.
    ///
    /// - Returns: False if the digest was present.
    @inline(__always)
    mutating func insert(_ digest: UInt64) -> Bool {
        let bit = Self.bit(digest)
        guard filter & bit == 0, count < few.count else { return insertSlowly(digest) }
        filter |= bit
        few[count] = digest
        count &+= 1
        return true
    }

    @inline(never)
    private mutating func insertSlowly(_ digest: UInt64) -> Bool {
        filter |= Self.bit(digest)
        guard count < Self.mostFew else {
            if many.isEmpty { many = Set(few) }
            return many.insert(digest).inserted
        }
        if few[..<count].contains(digest) { return false }
        if count == few.count { few.append(digest) } else { few[count] = digest }
        count += 1
        return true
    }

    @inline(__always)
    func contains(_ digest: UInt64) -> Bool {
        if filter & Self.bit(digest) == 0 { return false }
        return many.isEmpty ? few[..<count].contains(digest) : many.contains(digest)
    }

    @inline(__always)
    private static func bit(_ digest: UInt64) -> UInt64 { 1 << (digest >> 58) }

    /// Returns the digest of a key with these bytes.
    @inline(__always)
    static func digest(_ start: UnsafeRawPointer, _ count: Int) -> UInt64 {
        var digest = UInt64(truncatingIfNeeded: count)
        var offset = 0
        while offset &+ 8 <= count {
            digest = mixed(digest ^ start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset &+= 8
        }
        if offset < count {
            var rest: UInt64 = 0
            while offset < count {
                rest = rest << 8 | UInt64(start.load(fromByteOffset: offset, as: UInt8.self))
                offset &+= 1
            }
            digest = mixed(digest ^ rest)
        }
        return digest
    }

    /// Returns the digest of a key that is this text.
    @inline(__always)
    static func digest(_ text: String) -> UInt64 {
        let known = text.utf8.withContiguousStorageIfAvailable { utf8 in
            utf8.baseAddress.map { digest($0, utf8.count) } ?? 0
        }
        if let known { return known }
        return Array(text.utf8).withUnsafeBytes { utf8 in utf8.baseAddress.map { digest($0, utf8.count) } ?? 0 }
    }

    @inline(__always)
    private static func mixed(_ number: UInt64) -> UInt64 {
        let product = number.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return product.high ^ product.low
    }
}

/// The offsets of one map's pairs.
///
/// It is built if a key is not at its expected place, and to find duplicate keys.
///
/// Safety: Keys are read by a `CBORReader`, which checks each length. Ranges of keys come from items that were skipped
/// as a whole before.
struct CBORMapIndex {
    struct Entry {
        var key: Int
        var value: Int
        /// The digest of the key's bytes; see `CBORKeySet`.
        var digest: UInt64
    }

    private var entries: [Entry] = []
    /// The keys that were read in order, before the index was built; later all of them.
    var keys = CBORKeySet()
    /// The positions in `entries`, if there are more than `mostFew`.
    ///
    /// The hash is seeded, so that an attacker cannot choose keys that collide.
    private var positions: [CBORMapKey: Int] = [:]
    /// The position of the key that is expected next.
    private var next = 0
    /// The offset of the map's end.
    private(set) var end = 0

    private static let mostFew = 32

    /// Reads `count` pairs from `reader` on, or up to the stop code if the count is negative.
    mutating func build(_ reader: CBORReader, count: Int) throws(CBORFault) {
        var reader = reader
        entries.removeAll(keepingCapacity: true)
        keys.removeAll()
        if !positions.isEmpty { positions = [:] }
        next = 0
        while entries.count != count {
            if count < 0, try reader.skipStop() { break }
            let key = reader.offset
            try reader.skip()
            let value = reader.offset
            entries.append(Entry(key: key, value: value, digest: reader.digest(ofKey: key..<value)))
            try reader.skip()
        }
        end = reader.offset
        try entries.count <= Self.mostFew ? checkFew(reader) : checkMany(reader)
    }

    private mutating func checkFew(_ reader: CBORReader) throws(CBORFault) {
        for index in entries.indices {
            let entry = entries[index]
            if keys.insert(entry.digest) { continue }
            for other in entries[..<index] where other.digest == entry.digest {
                if reader.key(at: other.key) == reader.key(at: entry.key) {
                    throw CBORFault(.duplicateKey, entry.key)
                }
            }
        }
    }

    private mutating func checkMany(_ reader: CBORReader) throws(CBORFault) {
        positions.reserveCapacity(min(entries.count, 1 << 16))
        for index in entries.indices {
            let offset = entries[index].key
            if positions.updateValue(index, forKey: reader.key(at: offset)) != nil {
                throw CBORFault(.duplicateKey, offset)
            }
        }
    }

    /// Returns the pair with the key `text`, or `number` if there is no such text.
    mutating func find(_ text: String, _ number: Int?, _ reader: CBORReader) -> Entry? {
        if next < entries.count, reader.matchKey(text, at: entries[next].key) != nil { return entry(at: next) }
        if !positions.isEmpty {
            let position = positions[.text(Array(text.utf8))] ?? number.flatMap { positions[.number($0)] }
            return position.map { entry(at: $0) }
        }
        if keys.contains(CBORKeySet.digest(text)) {
            for index in entries.indices where reader.matchKey(text, at: entries[index].key) != nil {
                return entry(at: index)
            }
        }
        guard let number, let index = entries.firstIndex(where: { reader.at($0.key).number == number }) else {
            return nil
        }
        return entry(at: index)
    }

    private mutating func entry(at position: Int) -> Entry {
        next = position + 1
        return entries[position]
    }

    /// Returns the keys that `type` can represent, in the order of the map.
    func allKeys<Key: CodingKey>(_ type: Key.Type, _ reader: CBORReader) -> [Key] {
        entries.compactMap { entry in
            switch reader.key(at: entry.key) {
            case .number(let number): Key(intValue: number)
            case .text(let utf8): Key(stringValue: String(decoding: utf8, as: UTF8.self))
            case .other: nil
            }
        }
    }
}

/// A key of a map, equal for equal keys in any encoding.
enum CBORMapKey: Hashable {
    case number(Int)
    case text([UInt8])
    /// The bytes of an item that is neither a text nor a number.
    case other([UInt8])
}

extension CBORReader {
    /// Returns the offset of the value, if the key at `offset` is `text`.
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

    /// Compares a key after a tag, in pieces, or with a longer head than needed.
    @inline(__always)
    private func matchOtherKey(_ text: String, at offset: Int) -> Int? {
        guard offset < count else { return nil }
        let first = base.load(fromByteOffset: offset, as: UInt8.self)
        // Usually the key is plain text, but another one.
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

    /// The next item, if it is an integer.
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

    /// The next key, as a step of a path.
    var pathKey: CBORPathKey? {
        if let number { return CBORPathKey(number: number) }
        var reader = self
        return reader.textIfAny().map { CBORPathKey(text: $0) }
    }

    /// Reads the next item, if it is text.
    fileprivate mutating func textIfAny() -> String? {
        do throws(CBORFault) { return try string() } catch { return nil }
    }

    /// The digest of a plain text's bytes: without a tag, in one piece, and with the shortest head.
    @inline(__always)
    func digestOfPlainText(_ range: Range<Int>) -> UInt64? {
        let first = base.load(fromByteOffset: range.lowerBound, as: UInt8.self)
        guard first & 0xE0 == CBORFormat.Major.text, first & 0x1F < 24 else { return nil }
        return CBORKeySet.digest(base + range.lowerBound + 1, range.count &- 1)
    }

    /// The digest of a key's bytes, equal for equal keys in any encoding.
    @inline(__always)
    fileprivate func digest(ofKey range: Range<Int>) -> UInt64 {
        if let digest = digestOfPlainText(range) { return digest }
        switch key(at: range.lowerBound) {
        case .number(let number): return UInt64(bitPattern: Int64(number))
        case .text(let utf8), .other(let utf8):
            return utf8.withUnsafeBytes { bytes in bytes.baseAddress.map { CBORKeySet.digest($0, bytes.count) } ?? 0 }
        }
    }

    fileprivate func key(at offset: Int) -> CBORMapKey {
        var reader = at(offset)
        if let number = reader.number { return .number(number) }
        if let text = reader.textIfAny() { return .text(Array(text.utf8)) }
        reader.offset = offset
        do throws(CBORFault) { try reader.skip() } catch { return .other([]) }
        return .other(Array(UnsafeRawBufferPointer(start: base + offset, count: reader.offset - offset)))
    }
}
