public import Foundation

/// What a store knows of one of its caches.
public struct CacheInfo: Hashable, Sendable {
    /// Its name.
    public let name: String

    /// The version under which its entries were written.
    public let version: CacheVersion

    /// How many entries are served now, by the maximum age that was declared last.
    public let count: Int

    /// Payload and extended data of its entries, in bytes.
    public let sizeOnDisk: Int64

    /// When it was opened last.
    public let openedAt: Date
}
