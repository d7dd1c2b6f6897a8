public import Foundation

/// An event in a store that no caller asked for.
public struct CacheEvent: Sendable, Hashable {
    /// The kind of an event.
    public enum Kind: Sendable, Hashable {
        /// The database was damaged, or newer than the library, and was replaced; the original is at `setAside`.
        ///
        /// A damaged database is replaced by the entries that can be read. The message says how many entries were
        /// carried over and how many were lost.
        case recovered(setAside: URL)
        /// The store was missing, and begins as a copy of another one.
        case primed(URL)
        /// The store was missing, and begins empty, because the other one could not be copied.
        case notPrimed(URL)
        /// A cache was opened with another version or codec; its entries were written under `version`.
        case purged(version: CacheVersion)
        /// A cache was opened under another version, to which its entries were carried over.
        case migrated(MigrationReport)
        /// A call has used a handle that finds nothing any more, because its cache was opened under another version or codec,
        /// or removed.
        ///
        /// It is reported once for each handle. Open the cache under its newest version: to open the old one again purges the new
        /// entries.
        case superseded(version: CacheVersion)
        /// An expired entry was deleted.
        case expired
        /// An entry was removed to make room.
        case evicted(Eviction)
        /// A stored value does not decode as the requested type.
        case undecodable
        /// A row is damaged, or a value file is damaged or missing.
        case corruptEntry
        /// A write failed, and there was no call to throw the error.
        case writeFailed
        /// A read failed, and there was no call to throw the error.
        case readFailed
        /// The limits on disk cannot be held, because no entry may be evicted.
        case limitReached
        /// A value could not be refreshed in the background; the old one is served as long as the options allow.
        case refreshFailed
        /// The shared tier of a cache cannot be reached; until it can, values are loaded on this node alone.
        case sharedTierLost
        /// The shared tier is there again, and the node knows what it has missed.
        case sharedTierFound
        /// The shared tier of a cache answers, and refuses what it is asked: it is full, may not write, or lacks a right.
        case sharedTierRefuses
        /// The shared tier has lost writes that it had confirmed, and all its entries from before are dropped.
        case sharedWritesLost
        /// Messages of other nodes were lost, and all copies of the cache on this node were removed.
        case sharedMessagesLost
        /// More removals waited for the shared tier than the options allow, and all its entries will be removed.
        case sharedRemovalsOverflowed
        /// Memory was released.
        case memoryPressure(MemoryPressure)
    }

    /// The reason for an eviction.
    public enum Eviction: Sendable, Hashable {
        /// There were too many entries.
        case count
        /// The entries had too many bytes.
        case size
        /// The disk was short of space.
        case freeSpace
        /// An eviction closure chose the entry.
        case decider
    }

    /// The kind of the event.
    public let kind: Kind

    /// The name of the cache that the event concerns, if it concerns one.
    public let cacheName: String?

    /// The key that the event concerns, as text, if it concerns one.
    public let key: String?

    /// A sentence that describes the event.
    public let message: String

    /// The number of events that this stream had lost when this one was sent, because its reader was too slow.
    public internal(set) var lostBefore = 0

    package init(_ kind: Kind, cacheName: String? = nil, key: String? = nil, message: String) {
        self.kind = kind
        self.cacheName = cacheName
        self.key = key
        self.message = message
    }
}
