public import Foundation

extension ValueCodec where Value == Data {
    /// A codec that stores the bytes of `Data` unchanged.
    ///
    /// It is the default for `Data`.
    public static var data: ValueCodec {
        ValueCodec(identifier: "data", encode: { $0 }, decode: { $0 })
    }
}

extension ValueCodec where Value: Codable {
    /// A codec that writes CBOR, which is compact and fast.
    ///
    /// It is the default.
    ///
    /// A value that is nested more than 512 levels deep, or deeper than the stack of the calling thread allows, throws
    /// `.encodingFailed`. If a thread with a larger stack has stored a value, it can be `.undecodable` on a thread with
    /// a smaller one. `CBORDecoder` lists the types that are equal after a round trip.
    public static var cbor: ValueCodec { ValueCodec(identifier: "cbor", CBORValues<Value>()) }

    /// A codec that writes what a plain `JSONEncoder` writes.
    ///
    /// JSON has no NaN, no infinities and no nil inside a non-nil optional, and stores a URL without its base. Such
    /// values throw `.encodingFailed` if they are encoded as what they are. The check cannot see a value that encodes
    /// itself as something else, such as a number as text. The check encodes the value by the rules of
    /// ``ValueCodec/cbor`` first. So `encode(to:)` is called twice, and the limits of depth are the same.
    public static var json: ValueCodec {
        ValueCodec(
            identifier: "json",
            JSONValues<Value>(limits: CBOREncoder(), encoder: JSONEncoder(), decoder: JSONDecoder()))
    }

    /// Returns a codec that uses your own JSON encoder and decoder, with their strategies.
    ///
    /// Set the coders up before you call this method, and do not change them afterwards. The strategies are not part of
    /// the identifier: if you change them, open the cache under another version. Only your encoder checks for values
    /// that JSON cannot represent.
    ///
    /// - Parameters:
    ///   - encoder: The encoder.
    ///   - decoder: A decoder with the matching strategies.
    /// - Returns: The codec.
    public static func json(encoder: JSONEncoder, decoder: JSONDecoder) -> ValueCodec {
        ValueCodec(
            identifier: "json-custom", JSONValues<Value>(limits: nil, encoder: encoder, decoder: decoder))
    }

    /// The default codec: raw bytes for `Data`, CBOR for everything else.
    package static var standard: ValueCodec {
        ValueCodec<Data>.data as? ValueCodec ?? .cbor
    }
}

private struct CBORValues<Value: Codable>: ValueFormat {
    private let encoder = CBOREncoder()
    private let decoder = CBORDecoder()

    func encode(_ value: Value) throws -> Data { try encoder.encode(value) }

    func decode(_ data: Data) throws -> Value { try decoder.decode(Value.self, from: data) }
}

private struct JSONValues<Value: Codable>: ValueFormat {
    /// Finds values that JSON cannot represent; nil if only the encoder checks.
    let limits: CBOREncoder?
    let encoder: JSONEncoder
    let decoder: JSONDecoder

    func encode(_ value: Value) throws -> Data {
        try limits?.check(value, .likeJSON)
        return try encoder.encode(value)
    }

    func decode(_ data: Data) throws -> Value { try decoder.decode(Value.self, from: data) }
}

extension CBOREncoder {
    /// Throws if `rules` refuse a part of `value`.
    ///
    /// The bytes are discarded. It costs a tenth of JSON encoding.
    func check<T: Encodable>(_ value: T, _ rules: CBOREncodingRules) throws {
        _ = try encode(value, rules: rules)
    }
}
