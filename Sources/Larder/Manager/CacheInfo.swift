public import Foundation

/// Information about one cache of a store.
public struct CacheInfo: Hashable, Sendable {
    /// The name of the cache.
    public let name: String

    /// The version under which the entries were written.
    public let version: CacheVersion

    /// The number of entries that have not expired, by the maximum age that was declared last.
    public let count: Int

    /// The number of bytes of the payloads and extended data of the entries.
    public let sizeOnDisk: Int64

    /// The time at which the cache was opened last.
    public let openedAt: Date

    /// The limits on disk that hold for the cache, in whatever program.
    public let limits: DiskLimits

    /// What all programs have counted in the last ninety days.
    ///
    /// A program writes its counters hourly with other commits, and when it closes the store.
    public let activity: CacheStatistics

    /// The program that has opened the store last, for this cache or another one; nil if that is not known.
    public let lastOpener: StoreOpener?

    /// A program that has opened a store.
    public struct StoreOpener: Hashable, Sendable {
        /// The name of the program.
        public let program: String

        /// The release of Larder that the program had.
        public let libraryVersion: String

        /// The time at which the program opened the store.
        public let openedAt: Date
    }
}
