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
