public import Foundation

/// Turns CBOR (RFC 8949) back into `Decodable` values; the other half of `CBOREncoder`.
///
/// It reads what other encoders write as well: containers and strings of indefinite length, integers and lengths of
/// any width, half and single precision, integer keys, tags it does not know around content it does.
///
/// The bytes may come from anywhere. Whatever they are, the decoder neither traps nor allocates by a length that the
/// bytes do not hold. Values nested more than 512 levels deep are refused, and so are those for which the stack of the
/// calling thread is too small: half a megabyte, what secondary threads have on Apple's systems, is enough for some 200
/// levels in release mode and 100 in debug mode. Truncated or trailing bytes, text that is not UTF-8, items of another
/// type and keys that a map holds twice are errors that name the coding path and the offset. Content that nobody asks
/// for is checked for being well-formed only, at any depth.
public struct CBORDecoder: Sendable {
    /// What the values that are decoded may ask for.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    private let pool = CBORStatePool<CBORDecodingState>()

    /// Makes a decoder with the defaults.
    ///
    /// To keep one and use it often, from any thread, is faster than to make one for each value.
    public init() {}

    /// The value that `data` holds.
    ///
    /// - Throws: `DecodingError` with the coding path, or what the value's own `init(from:)` throws.
    public func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T {
        try data.withUnsafeBytes { try decode(type, from: $0) }
    }

    /// The value in bytes that need to be there for the time of the call only.
    ///
    /// Safety: A decoder or container that user code kept works on a copy of the bytes; see `CBORDecodingState`.
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
        // If a type kept its decoder or a container, that one needs its own bytes.
        if !isKnownUniquelyReferenced(&state) { state.keepBytes() }
    }
}
