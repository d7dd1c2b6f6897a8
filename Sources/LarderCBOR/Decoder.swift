public import Foundation

/// An object that decodes values from CBOR (RFC 8949).
///
/// It also reads forms that other encoders write: containers and strings of indefinite length, and integers and lengths
/// of any width. Half and single precision, integer keys, and unknown tags around known content are read too.
///
/// The bytes may come from any source. The decoder neither traps nor allocates by a length that the bytes don't hold.
/// It refuses values that are nested more than 512 levels deep, or too deep for the stack of the calling thread. Half a
/// megabyte, the stack of secondary threads on Apple's systems, is enough for some 200 levels in release mode and 100
/// in debug mode.
///
/// Damaged bytes are errors with the coding path and the offset. Such are truncated or trailing bytes, text that is not
/// UTF-8, items of another type, and duplicate keys of a map. Content that the type doesn't decode is only checked to
/// be well-formed, at any depth.
public struct CBORDecoder: Sendable {
    /// Values that the decoded types can read from their decoder.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    private let pool = CBORStatePool<CBORDecodingState>()

    /// Creates a decoder with the defaults.
    ///
    /// Keeping one decoder, for use from any thread, is faster than creating one for each value.
    public init() {}

    /// Decodes a value.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - data: The bytes of the value.
    /// - Returns: The value.
    /// - Throws: `DecodingError` with the coding path, or an error of the value's own `init(from:)`.
    public func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T {
        try data.withUnsafeBytes { try decode(type, from: $0) }
    }

    /// Decodes a value from bytes that are valid during the call only.
    ///
    /// Safety: A decoder or container that user code keeps works on a copy of the bytes; see `CBORDecodingState`.
    package func decode<T: Decodable>(_ type: T.Type, from bytes: UnsafeRawBufferPointer) throws -> T {
        guard let base = bytes.baseAddress else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: [], debugDescription: "There are no bytes to decode."))
        }
        var state = pool.take() ?? CBORDecodingState()
        state.begin(base: base, count: bytes.count, userInfo: userInfo)
        let value: T
        do {
            value = try state.decode(type, at: 0, in: nil)
            guard state.end == bytes.count else { throw state.failure(CBORFault(.trailing, state.end), type, in: nil) }
        } catch {
            Self.abandon(&state)
            throw error
        }
        guard state.reset() else {
            Self.abandon(&state)
            return value
        }
        pool.give(state)
        return value
    }

    /// Releases a state that is not used again.
    private static func abandon(_ state: inout CBORDecodingState) {
        state.finish()
        // If a type kept its decoder or a container, that object needs its own bytes.
        if !isKnownUniquelyReferenced(&state) { state.keepBytes() }
    }
}

/// The `Decoder` that a value's `init(from:)` is given.
struct CBORDecoding: Decoder {
    let frame: CBORDecodingFrame

    var codingPath: [any CodingKey] { frame.codingPath }
    var userInfo: [CodingUserInfoKey: Any] { frame.state.userInfo }

    @inline(__always)
    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try frame.state.makers.pointee.maker(ObjectIdentifier(type)) {
            CBORDecodingMaker<Key, CBORKeyedDecoding<Key>>()
        }.container(frame.becomeMap())
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        CBORUnkeyedDecoding(frame: try frame.becomeArray())
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        CBORSingleValueDecoding(frame: frame)
    }
}
