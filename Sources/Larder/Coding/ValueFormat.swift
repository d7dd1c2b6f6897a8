import Foundation

/// A format that a built-in codec writes.
///
/// A closure that names the conformance of a type to `Codable` can be sent to another thread only if that conformance can.
/// So the conformance stays in here, and codecs of every `Codable` type can be had. To use one in a cache its values must be
/// `Sendable`, and then it can be sent.
///
/// Safety: Lent bytes are valid for the time of the call. A format that does not copy them decodes them before it
/// returns.
protocol ValueFormat<Value>: Sendable {
    associatedtype Value

    func encode(_ value: Value) throws -> Data
    func decode(_ data: Data) throws -> Value
    /// Decodes bytes that are there for the time of the call only.
    func decode(lent bytes: UnsafeRawBufferPointer) throws -> Value
}

extension ValueFormat {
    func decode(lent bytes: UnsafeRawBufferPointer) throws -> Value { try decode(Data(bytes)) }
}

extension ValueCodec {
    init(identifier: String, _ format: any ValueFormat<Value>) {
        self.init(
            identifier: identifier,
            encode: { try format.encode($0) },
            decode: { try format.decode($0) },
            decodeLent: { try format.decode(lent: $0) })
    }
}
