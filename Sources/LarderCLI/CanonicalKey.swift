internal import Foundation

/// Tells the bytes of a key that a program writes from other CBOR, under which no program finds an entry.
struct CanonicalKey {
    private let bytes: [UInt8]
    private var place = 0

    /// Returns whether bytes are one item in the form of a key: shortest heads, definite lengths, sorted maps, text in NFC, no
    /// NaN, and neither a text nor an integer of 64 bits, which are stored as such.
    static func isCanonical(_ key: Data) -> Bool {
        var reader = CanonicalKey(bytes: Array(key))
        guard let first = reader.bytes.first, first >> 5 != 3 else { return false }
        if first >> 5 < 2 {
            guard let number = reader.head()?.argument, number > UInt64(Int64.max) else { return false }
            return reader.place == reader.bytes.count
        }
        return reader.skipItem(depth: 0) && reader.place == reader.bytes.count
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    /// Reads the head of an item; nil if it is cut off, longer than it need be, or without a length.
    private mutating func head() -> (major: UInt8, argument: UInt64)? {
        guard place < bytes.count else { return nil }
        let (major, info) = (bytes[place] >> 5, bytes[place] & 31)
        place += 1
        if info < 24 { return (major, UInt64(info)) }
        guard info < 28, let number = number(1 << Int(info - 24)) else { return nil }
        let least: [UInt64] = [24, 1 << 8, 1 << 16, 1 << 32]
        return number < least[Int(info - 24)] ? nil : (major, number)
    }

    private mutating func number(_ count: Int) -> UInt64? { take(UInt64(count))?.reduce(0) { $0 << 8 | UInt64($1) } }

    private mutating func take(_ count: UInt64) -> ArraySlice<UInt8>? {
        guard count <= UInt64(bytes.count - place) else { return nil }
        defer { place += Int(count) }
        return bytes[place..<place + Int(count)]
    }

    private mutating func skipItem(depth: Int) -> Bool {
        guard depth < 512, place < bytes.count else { return false }
        if bytes[place] >> 5 == 7 { return skipSimple() }
        guard let (major, argument) = head() else { return false }
        switch major {
        case 0, 1: return true
        case 2: return take(argument) != nil
        case 3: return take(argument).map(Self.isNormal) ?? false
        case 4: return skipItems(argument, depth)
        case 5: return skipPairs(argument, depth)
        default:
            let start = place
            guard skipItem(depth: depth + 1) else { return false }
            return ![2, 3].contains(argument) || Self.isWide(bytes[start..<place])
        }
    }

    private mutating func skipItems(_ count: UInt64, _ depth: Int) -> Bool {
        // Each item has a byte at least.
        guard count <= UInt64(bytes.count - place) else { return false }
        for _ in 0..<count where !skipItem(depth: depth + 1) { return false }
        return true
    }

    private mutating func skipPairs(_ count: UInt64, _ depth: Int) -> Bool {
        guard count <= UInt64(bytes.count - place) else { return false }
        var last: ArraySlice<UInt8>?
        for _ in 0..<count {
            let start = place
            guard skipItem(depth: depth + 1) else { return false }
            let key = bytes[start..<place]
            if let last, !last.lexicographicallyPrecedes(key) { return false }
            last = key
            guard skipItem(depth: depth + 1) else { return false }
        }
        return true
    }

    private mutating func skipSimple() -> Bool {
        let info = bytes[place] & 31
        place += 1
        switch info {
        case 20...22: return true
        case 25:
            guard let bits = number(2) else { return false }
            // Neither a NaN nor a zero with a sign.
            return bits & 0x7FFF <= 0x7C00 && bits != 0x8000
        case 26:
            guard let bits = number(4) else { return false }
            let value = Float(bitPattern: UInt32(bits))
            return !value.isNaN && !Self.isHalf(value)
        case 27:
            guard let bits = number(8) else { return false }
            let value = Double(bitPattern: bits)
            return !value.isNaN && Double(Float(value)) != value
        default: return false
        }
    }

    /// Returns whether a number has a form of 16 bits.
    private static func isHalf(_ value: Float) -> Bool {
        if value == 0 || value.isInfinite { return true }
        guard value.magnitude <= 65_504 else { return false }
        let steps = value / Float(sign: .plus, exponent: max(value.exponent, -14) - 10, significand: 1)
        return steps == steps.rounded()
    }

    private static func isNormal(_ utf8: ArraySlice<UInt8>) -> Bool {
        // What is no text has other bytes now.
        String(decoding: utf8, as: UTF8.self).precomposedStringWithCanonicalMapping.utf8.elementsEqual(utf8)
    }

    /// Returns whether the bytes of a large integer have no shorter form: more than eight, and no zero first.
    private static func isWide(_ item: ArraySlice<UInt8>) -> Bool {
        guard let first = item.first, first >> 5 == 2 else { return false }
        return (9...23).contains(item.count - 1) && item[item.startIndex + 1] != 0
    }
}
