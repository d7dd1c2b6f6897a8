public import Foundation

extension ValueCodec where Value == Data {
    /// The bytes as they are.
    public static var data: ValueCodec {
        ValueCodec(identifier: "data", encode: { $0 }, decode: { $0 })
    }
}

extension ValueCodec where Value: Codable {
    /// CBOR, compact and fast: the standard codec.
    ///
    /// A value nested more than 512 levels deep, or deeper than the stack of the calling thread allows, is refused with
    /// `.encodingFailed`; one that a thread with a larger stack has stored is `.undecodable` on that thread. See
    /// `CBORDecoder` for what fits.
    public static var cbor: ValueCodec { ValueCodec(identifier: "cbor", CBORValues<Value>()) }

    /// What a plain `JSONEncoder` writes.
    ///
    /// JSON has no NaN and no infinities, no nil inside an optional that is not nil itself, and holds a URL without its
    /// base. Such values are refused with `.encodingFailed` wherever they are written as what they are. A value that
    /// turns itself into something else, a number into text for instance, is beyond that check. The check encodes the value
    /// by the rules of ``ValueCodec/cbor`` first: `encode(to:)` is called twice, and the bounds of depth are the same.
    public static var json: ValueCodec {
        ValueCodec(
            identifier: "json",
            JSONValues<Value>(limits: CBOREncoder(), encoder: JSONEncoder(), decoder: JSONDecoder()))
    }

    /// JSON by an encoder and a decoder of your own, with the strategies they are set to.
    ///
    /// Set them up before, and leave them alone afterwards. The strategies are no part of the identifier: when you change
    /// them, open the sub-cache under another version. What JSON cannot hold is refused where the encoder refuses it.
    public static func json(encoder: JSONEncoder, decoder: JSONDecoder) -> ValueCodec {
        ValueCodec(
            identifier: "json-custom", JSONValues<Value>(limits: nil, encoder: encoder, decoder: decoder))
    }

    /// The codec that is used where none is named: raw bytes for `Data`, CBOR for everything else.
    package static var standard: ValueCodec {
        ValueCodec<Data>.data as? ValueCodec ?? .cbor
    }
}

// Safety: Lent bytes are valid for the time of the call. The decoder copies them if a value keeps its decoder.
private struct CBORValues<Value: Codable>: ValueFormat {
    private let encoder = CBOREncoder()
    private let decoder = CBORDecoder()

    func encode(_ value: Value) throws -> Data { try encoder.encode(value) }

    func decode(_ data: Data) throws -> Value { try decoder.decode(Value.self, from: data) }

    func decode(lent bytes: UnsafeRawBufferPointer) throws -> Value { try decoder.decode(Value.self, from: bytes) }
}

private struct JSONValues<Value: Codable>: ValueFormat {
    /// Finds what JSON cannot hold; nil where that is left to the encoder.
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
    /// Throws where `rules` refuse a part of `value`.
    ///
    /// The bytes are not wanted; it costs a tenth of what JSON does.
    func check<T: Encodable>(_ value: T, _ rules: CBOREncodingRules) throws {
        _ = try encode(value, rules: rules)
    }
}
