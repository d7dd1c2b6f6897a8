import Foundation
internal import LarderCBOR
public import LarderStore

/// How keys become what is stored, and keys again.
///
/// A key that encodes as a text or an integer is stored as one, whatever its type is: a `String`, an `Int8`, an enum with
/// raw values, a struct around a single of these. Every other key is a blob of deterministic CBOR. Text is in NFC
/// everywhere in a key, zero has no sign, and a NaN is refused.
///
/// An integer above `Int64.max` is a blob of eight bytes behind `0x1B`, the most significant first. SQLite sorts blobs
/// after integers, and these by their bytes, so keys of type `UInt64` are in the order of their values; those of
/// `UInt128` too, for a number beyond 64 bits begins with `0xC2` and its length. An `Int128` below `Int64.min` is
/// listed behind these, in no order of values: `0x3B` begins those of 64 bits and a sign, `0xC3` those beyond.
@usableFromInline
package struct KeyCodec<Key: Codable & Hashable & Sendable>: Sendable {
    private let encoder = CBOREncoder()
    private let decoder = CBORDecoder()

    package init() {}

    /// What is stored of most keys of the type; nil if its `init(from:)` reads several kinds.
    ///
    /// An integer that is wider than 64 bits is bytes in a cache of integers.
    static var kind: KeyKind? {
        if Key.self == Int.self { return .integer }
        if Key.self == String.self { return .text }
        return switch CBORItemKind(of: Key.self) {
        case .integer: .integer
        case .text: .text
        case .other: .bytes
        case nil: nil
        }
    }

    /// The form in which `key` is stored; `cache` is for the message of an error.
    @inlinable @inline(__always)
    package func stored(_ key: Key, cache: @autoclosure () -> String) throws(CacheError) -> StoredKey {
        // The types are asked for by name, since a cast alone would take an `AnyHashable` for what is in it.
        if Key.self == Int.self, let number = key as? Int { return .integer(Int64(number)) }
        if Key.self == String.self, let text = key as? String { return .text(normalized(text)) }
        return try encoded(key, cache())
    }

    @usableFromInline
    func normalized(_ text: String) -> String { CBORText.normalized(text) }

    @usableFromInline func encoded(_ key: Key, _ cache: String) throws(CacheError) -> StoredKey {
        do {
            return Self.form(try encoder.encode(key, rules: .key))
        } catch {
            throw CacheError(
                .encodingFailed,
                "A key of type \(Key.self) cannot be encoded for cache \"\(cache)\". Use a key whose parts can all be"
                    + " encoded and equal themselves.",
                underlying: error)
        }
    }

    /// Text and integers as such, anything else as the bytes it is.
    private static func form(_ bytes: Data) -> StoredKey {
        switch CBORPlainItem(bytes) {
        case .text(let text): .text(text)
        case .integer(let number): .integer(number)
        case nil: .blob(bytes)
        }
    }

    /// The key that `stored` is the form of.
    @inlinable
    package func key(_ stored: StoredKey, cache: @autoclosure () -> String) throws(CacheError) -> Key {
        if Key.self == Int.self, case .integer(let number) = stored, let key = Int(number) as? Key { return key }
        if Key.self == String.self, case .text(let text) = stored, let key = text as? Key { return key }
        return try decoded(stored, cache())
    }

    @usableFromInline
    func decoded(_ stored: StoredKey, _ cache: String) throws(CacheError) -> Key {
        do {
            switch stored {
            case .text(let text):
                return try decoder.decode(Key.self, from: try encoder.encode(text))
            case .integer(let number):
                return try decoder.decode(Key.self, from: try encoder.encode(number))
            case .blob(let bytes):
                return try decoder.decode(Key.self, from: bytes)
            }
        } catch {
            throw CacheError(
                .undecodable,
                "The stored key \"\(stored)\" in cache \"\(cache)\" does not decode as \(Key.self). Open the cache under"
                    + " another version when the type of its keys has changed.",
                underlying: error)
        }
    }
}

extension StoredKey {
    /// The number of bytes of the key as it is stored.
    @usableFromInline package var encodedCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .integer: 8
        case .blob(let bytes): bytes.count
        }
    }

    /// The text, the digits, or the encoding in hexadecimal.
    @usableFromInline package var name: String {
        switch self {
        case .text(let text): text
        case .integer(let number): String(number)
        case .blob(let bytes): bytes.map { String(UInt16($0) + 0x100, radix: 16).dropFirst() }.joined()
        }
    }
}
