/// How keys become hashes: a secret of one table.
///
/// Integers of a fixed width are hashed by two full-width multiplications with the secret, a quarter of the price of
/// `Hasher`; `Key.self == Int.self` folds away in specialised code. Every other key goes through its own `hash(into:)`,
/// and is then mixed with the secret, so that listing one table into another never meets the order of its chunks.
@usableFromInline
package struct HashSeed: Sendable {
    @usableFromInline let first: UInt64
    @usableFromInline let second: UInt64

    /// A seed that no caller can know.
    package init() {
        var random = SystemRandomNumberGenerator()
        self.init(first: random.next(), second: random.next())
    }

    /// A given seed, for tests that attack a table.
    package init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second | 1
    }

    /// The hash of a key.
    @inlinable @inline(__always)
    package func hash<Key: Hashable>(_ key: Key) -> UInt64 {
        mixed(Self.bits(of: key) ?? UInt64(truncatingIfNeeded: key.hashValue))
    }

    /// Two multiplications: with one, keys in sequence would be spread too evenly, and keys at a fixed distance badly.
    @inlinable @inline(__always)
    func mixed(_ bits: UInt64) -> UInt64 {
        let once = (bits ^ first).multipliedFullWidth(by: second)
        let twice = (once.high ^ once.low ^ first).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return twice.high ^ twice.low
    }

    /// Whether keys of this type are hashed without their `hash(into:)`.
    @inlinable
    package static func isInteger<Key>(_ type: Key.Type) -> Bool {
        type == Int.self || type == UInt.self || type == Int64.self || type == UInt64.self || type == Int32.self
            || type == UInt32.self || type == Int16.self || type == UInt16.self || type == Int8.self
            || type == UInt8.self
    }

    /// The value of a key that is a fixed-width integer.
    ///
    /// The type is asked for by name, since a cast alone would let an `AnyHashable` through, whose `==` knows more.
    @inlinable @inline(__always)
    static func bits<Key>(of key: Key) -> UInt64? {
        if Key.self == Int.self, let key = key as? Int { return UInt64(truncatingIfNeeded: key) }
        if Key.self == UInt.self, let key = key as? UInt { return UInt64(truncatingIfNeeded: key) }
        if Key.self == Int64.self, let key = key as? Int64 { return UInt64(truncatingIfNeeded: key) }
        if Key.self == UInt64.self, let key = key as? UInt64 { return UInt64(truncatingIfNeeded: key) }
        if Key.self == Int32.self, let key = key as? Int32 { return UInt64(truncatingIfNeeded: key) }
        if Key.self == UInt32.self, let key = key as? UInt32 { return UInt64(truncatingIfNeeded: key) }
        if Key.self == Int16.self, let key = key as? Int16 { return UInt64(truncatingIfNeeded: key) }
        if Key.self == UInt16.self, let key = key as? UInt16 { return UInt64(truncatingIfNeeded: key) }
        if Key.self == Int8.self, let key = key as? Int8 { return UInt64(truncatingIfNeeded: key) }
        if Key.self == UInt8.self, let key = key as? UInt8 { return UInt64(truncatingIfNeeded: key) }
        return nil
    }
}
