public import Foundation

/// Turns `Encodable` values into CBOR (RFC 8949), the compact binary format that the standard codec stores.
///
/// ```swift
/// let bytes = try CBOREncoder().encode(article)
/// let copy = try CBORDecoder().decode(Article.self, from: bytes)
/// ```
///
/// Structs, classes and dictionaries with keys that are strings or integers become maps with text keys, sequences
/// become arrays, `Data` and `[UInt8]` byte strings. `Date`, `UUID`, `URL` and `Decimal` carry their tags. What comes
/// back equals what went in: dates to the last bit, NaN and infinities, optionals at any depth. A key encoded twice (a
/// class and its superclass may do that) is written once, with the value that came last.
public struct CBOREncoder: Sendable {
    /// Whether equal values give equal bytes, in every process and after every release.
    ///
    /// Lengths and numbers take their shortest form and maps are sorted by their encoded keys, as section 4.2 of the
    /// RFC describes; sets, and dictionaries with other keys than strings and integers, are sorted by the encoded
    /// bytes of their elements. This costs time, so it is off unless asked for.
    public var isDeterministic = false

    /// What the values that are encoded may ask for.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    private let pool = CBORStatePool<CBOREncodingState>()

    /// Makes an encoder with the defaults.
    ///
    /// To keep one and use it often, from any thread, is faster than to make one for each value.
    public init() {}

    /// The bytes of `value`.
    ///
    /// - Throws: `EncodingError` with the coding path, or what the value's own `encode(to:)` throws.
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

/// What is done beyond writing a value down.
package struct CBOREncodingRules: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Shortest forms, sorted maps, sorted sets.
    package static let deterministic = CBOREncodingRules(rawValue: 1 << 0)
    /// Text in NFC, no NaN, no negative zero: what makes two equal keys one.
    package static let identity = CBOREncodingRules(rawValue: 1 << 1)
    /// Only what JSON holds as well, else an error.
    package static let likeJSON = CBOREncodingRules(rawValue: 1 << 2)
    /// Only what a property list holds as well, else an error.
    package static let likePropertyList = CBOREncodingRules(rawValue: 1 << 3)

    /// Whether the bytes are not wanted, only the errors.
    var imitates: Bool { !isDisjoint(with: [.likeJSON, .likePropertyList]) }

    /// The form of a key: deterministic, and equal for equal keys.
    package static let key: CBOREncodingRules = [.deterministic, .identity]
}
