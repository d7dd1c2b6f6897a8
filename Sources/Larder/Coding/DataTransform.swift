public import Foundation

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
