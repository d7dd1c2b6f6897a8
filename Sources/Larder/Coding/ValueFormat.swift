import Foundation

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
