public import Foundation

/// An object that encodes values as CBOR (RFC 8949), the compact binary format of the default codec.
///
/// ```swift
/// let bytes = try CBOREncoder().encode(article)
/// let copy = try CBORDecoder().decode(Article.self, from: bytes)
/// ```
///
/// Structs, classes and dictionaries with keys that are strings or integers become maps with text keys. Sequences
/// become arrays, and `Data` and `[UInt8]` become byte strings. `Date`, `UUID`, `URL` and `Decimal` carry their tags. A
/// decoded value equals the encoded one: dates to the last bit, NaN and infinities, optionals at any depth. A key that
/// is encoded twice (a class and its superclass may do that) is written once, with the last value.
public struct CBOREncoder: Sendable {
    /// A Boolean value that indicates whether equal values give equal bytes, in every process and after every release.
    ///
    /// The default is false, because this costs time. If it is true, lengths and numbers have their shortest form. Maps
    /// are sorted by their encoded keys, as in section 4.2 of the RFC. Sets, and dictionaries with keys that are
    /// neither strings nor integers, are sorted by the encoded bytes of their elements.
    public var isDeterministic = false

    /// Values that the encoded types can read from their encoder.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    private let pool = CBORStatePool<CBOREncodingState>()

    /// Creates an encoder with the defaults.
    ///
    /// Keeping one encoder, for use from any thread, is faster than creating one for each value.
    public init() {}

    /// Encodes a value.
    ///
    /// - Parameter value: The value to encode.
    /// - Returns: The bytes of the value.
    /// - Throws: `EncodingError` with the coding path, or an error of the value's own `encode(to:)`.
    public func encode<T: Encodable>(_ value: T) throws -> Data {
        try encode(value, rules: isDeterministic ? .deterministic : [])
    }

    package func encode<T: Encodable>(_ value: T, rules: CBOREncodingRules) throws -> Data {
        let state = pool.take() ?? CBOREncodingState()
        state.begin(rules: rules, userInfo: userInfo)
        let data: Data
        do {
            try state.encode(root: value)
            data = state.takeData()
        } catch {
            state.finish()
            throw error
        }
        state.reset()
        pool.give(state)
        return data
    }
}

/// The rules for the encoded form.
package struct CBOREncodingRules: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Shortest forms, sorted maps, sorted sets.
    package static let deterministic = CBOREncodingRules(rawValue: 1 << 0)
    /// Text in NFC, no NaN, no negative zero, so that equal keys have equal bytes.
    package static let identity = CBOREncodingRules(rawValue: 1 << 1)
    /// Only values that JSON can hold, else an error.
    package static let likeJSON = CBOREncodingRules(rawValue: 1 << 2)
    /// Only values that a property list can hold, else an error.
    package static let likePropertyList = CBOREncodingRules(rawValue: 1 << 3)

    /// A Boolean value that indicates whether only the errors are needed, and not the bytes.
    var imitates: Bool { !isDisjoint(with: [.likeJSON, .likePropertyList]) }

    /// The form of a key: deterministic, and equal for equal keys.
    package static let key: CBOREncodingRules = [.deterministic, .identity]
}

/// The `Encoder` that a value's `encode(to:)` is given.
struct CBOREncoding: Encoder {
    let frame: CBOREncodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }
    var userInfo: [CodingUserInfoKey: Any] { frame.state.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        frame.writer.pointee.makers.maker(ObjectIdentifier(type)) {
            CBOREncodingMaker<Key, CBORKeyedEncoding<Key>>()
        }.container(frame.becomes(.map) ? frame : refusing)
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        CBORUnkeyedEncoding(frame: frame.becomes(.array) ? frame : refusing)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        CBORSingleValueEncoding(frame: frame)
    }

    /// A frame whose every write throws.
    private var refusing: CBOREncodingFrame { CBOREncodingFrame(state: frame.state) }
}
