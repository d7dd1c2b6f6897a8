public import Foundation

/// A step between the bytes that a codec makes and those that are stored: compression, encryption.
///
/// Steps are chained with ``ValueCodec/then(_:)``, applied in the order in which they were chained and undone in
/// reverse.
public struct DataTransform: Sendable {
    /// The name of the step: a sub-cache opened with another one is purged.
    public let identifier: String

    let apply: @Sendable (Data) throws -> Data
    let undo: @Sendable (Data) throws -> Data

    /// A step whose `undo` gives back what `apply` was given.
    ///
    /// - Parameters:
    ///   - identifier: A name that no other step has, and that changes whenever what `apply` makes does.
    ///   - apply: Makes the bytes to store of those of the codec.
    ///   - undo: Makes the bytes of the codec of those that were stored.
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
