public import Foundation

/// How values become bytes and values again.
///
/// A cache opened with a codec of another identifier is purged, like one opened under another version.
public struct ValueCodec<Value>: Sendable {
    /// The name of the format, followed by those of the transforms, with a plus sign before each.
    ///
    /// A plus sign or a backslash in a name is escaped with a backslash, so that different chains have different names.
    public let identifier: String

    @usableFromInline let encode: @Sendable (Value) throws -> Data
    @usableFromInline let decode: @Sendable (Data) throws -> Value
    @usableFromInline let transforms: [DataTransform]

    /// A codec of your own.
    ///
    /// What the closures throw arrives as the cause of a ``CacheError`` that names the cache and the key. They are called
    /// from any thread, and no lock is held.
    ///
    /// - Parameters:
    ///   - identifier: A name that no other codec has. Change it unless `decode` reads all that was written under it.
    ///   - encode: Makes the bytes of a value.
    ///   - decode: Makes the value of these bytes.
    public init(
        identifier: String,
        encode: @escaping @Sendable (Value) throws -> Data,
        decode: @escaping @Sendable (Data) throws -> Value
    ) {
        self.init(joined: Self.escaped(identifier), encode: encode, decode: decode, transforms: [])
    }

    private init(
        joined identifier: String,
        encode: @escaping @Sendable (Value) throws -> Data,
        decode: @escaping @Sendable (Data) throws -> Value,
        transforms: [DataTransform]
    ) {
        self.identifier = identifier
        self.encode = encode
        self.decode = decode
        self.transforms = transforms
    }

    /// This codec with a transform behind it: applied after those that are there, and undone before them.
    public func then(_ transform: DataTransform) -> ValueCodec<Value> {
        ValueCodec(
            joined: identifier + "+" + Self.escaped(transform.identifier),
            encode: encode, decode: decode, transforms: transforms + [transform])
    }

    private static func escaped(_ name: String) -> String {
        // Looked for first: replacing what is not there takes a microsecond, at each opening of a handle.
        guard name.utf8.contains(where: { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "\\") }) else { return name }
        return name.replacing("\\", with: "\\\\").replacing("+", with: "\\+")
    }
}

// MARK: - For the cache

extension ValueCodec {
    /// The bytes to store.
    ///
    /// `cache` and `key` are for the message of an error.
    @inlinable
    package func encode(
        _ value: Value, cache: @autoclosure () -> String, key: @autoclosure () -> String
    ) throws(CacheError) -> Data {
        do {
            let bytes = try encode(value)
            return transforms.isEmpty ? bytes : try applied(bytes)
        } catch {
            throw unencodable(cache(), key(), error)
        }
    }

    @usableFromInline
    func applied(_ bytes: Data) throws -> Data { try transforms.reduce(bytes) { try $1.apply($0) } }

    @usableFromInline
    func unencodable(_ cache: String, _ key: String, _ cause: any Error) -> CacheError {
        CacheError(
            .encodingFailed,
            "The value for key \"\(key)\" in cache \"\(cache)\" cannot be encoded by the codec \"\(identifier)\"."
                + " Nothing was stored; change the value, or choose a codec that holds it.",
            underlying: cause)
    }

    /// The value in stored bytes.
    @inlinable
    package func decode(
        _ data: Data, cache: @autoclosure () -> String, key: @autoclosure () -> String
    ) throws(CacheError) -> Value {
        do {
            return try decode(transforms.isEmpty ? data : undone(data))
        } catch {
            throw undecodable(cache(), key(), error)
        }
    }

    @usableFromInline
    func undone(_ data: Data) throws -> Data { try transforms.reversed().reduce(data) { try $1.undo($0) } }

    @usableFromInline
    func undecodable(_ cache: String, _ key: String, _ cause: any Error) -> CacheError {
        CacheError(
            .undecodable,
            "What is stored for key \"\(key)\" in cache \"\(cache)\" does not decode as \(Value.self) by the codec"
                + " \"\(identifier)\". Open the cache under another version when the type has changed.",
            underlying: cause)
    }
}

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

extension ValueCodec where Value: Codable {
    /// A codec that writes a binary property list.
    ///
    /// A property list has a container at its top. So each value is stored in a dictionary under the key `larder.value`.
    /// Property lists have no nil: Foundation writes the text `$null` for it. So this text, and a nil inside a non-nil
    /// optional, throw `.encodingFailed`.
    ///
    /// The check encodes the value by the rules of ``ValueCodec/cbor`` first. So `encode(to:)` is called twice, and the
    /// limits of depth of ``ValueCodec/cbor`` apply.
    public static var propertyList: ValueCodec { ValueCodec(identifier: "plist", PropertyListValues<Value>()) }
}

private struct PropertyListValues<Value: Codable>: ValueFormat {
    private struct Item: Codable {
        let value: Value

        private enum CodingKeys: String, CodingKey {
            case value = "larder.value"
        }
    }

    private let limits = CBOREncoder()

    func encode(_ value: Value) throws -> Data {
        try limits.check(value, .likePropertyList)
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return try encoder.encode(Item(value: value))
    }

    func decode(_ data: Data) throws -> Value { try PropertyListDecoder().decode(Item.self, from: data).value }
}

/// A format that a built-in codec writes.
///
/// A closure that names the conformance of a type to `Codable` can be sent to another thread only if that conformance can.
/// So the conformance stays in here, and codecs of every `Codable` type can be had. To use one in a cache its values must be
/// `Sendable`, and then it can be sent.
protocol ValueFormat<Value>: Sendable {
    associatedtype Value

    func encode(_ value: Value) throws -> Data
    func decode(_ data: Data) throws -> Value
}

extension ValueCodec {
    init(identifier: String, _ format: any ValueFormat<Value>) {
        self.init(
            identifier: identifier,
            encode: { try format.encode($0) },
            decode: { try format.decode($0) })
    }
}

/// A transform of the bytes between a codec and the store, such as compression or encryption.
///
/// Chain transforms with ``ValueCodec/then(_:)``. A write applies them in the order of the chain, and a read undoes
/// them in reverse.
public struct DataTransform: Sendable {
    /// The name of the transform.
    ///
    /// If a cache is opened with another name, its entries are purged.
    public let identifier: String

    let apply: @Sendable (Data) throws -> Data
    let undo: @Sendable (Data) throws -> Data

    /// Creates a transform whose `undo` returns the bytes that `apply` was given.
    ///
    /// The closures run on any thread, with no lock held.
    ///
    /// - Parameters:
    ///   - identifier: A unique name of the transform. Change it whenever the output of `apply` changes.
    ///   - apply: Returns the bytes to store for the bytes of the codec.
    ///   - undo: Returns the bytes of the codec for the stored bytes.
    public init(
        identifier: String,
        apply: @escaping @Sendable (Data) throws -> Data,
        undo: @escaping @Sendable (Data) throws -> Data
    ) {
        self.identifier = identifier
        self.apply = apply
        self.undo = undo
    }
}
