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
            "The value for key \(key) in cache \"\(cache)\" cannot be encoded by the codec \"\(identifier)\"."
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
            "What is stored for key \(key) in cache \"\(cache)\" does not decode as \(Value.self) by the codec"
                + " \"\(identifier)\". Open the cache under another version when the type has changed.",
            underlying: cause)
    }
}
