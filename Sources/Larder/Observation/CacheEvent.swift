public import Foundation

/// Something that happened to a store and that nobody asked for.
public struct CacheEvent: Sendable, Hashable {
    /// What happened.
    public enum Kind: Sendable, Hashable {
        /// The database was damaged, or newer than the library, and was replaced; the original is at `setAside`.
        ///
        /// A damaged one was replaced by what could be read of it. The message says how many entries were carried over and
        /// how many were lost.
        case recovered(setAside: URL)
        /// A cache was opened under another version than this, under which its entries were written, or with another codec.
        case purged(version: CacheVersion)
        /// An entry was over, and removed.
        case expired
        /// An entry was removed to make room.
        case evicted(Eviction)
        /// What is stored does not decode as the type asked for.
        case undecodable
        /// A row or a file is damaged or gone.
        case corruptEntry
        /// Something could not be written, and no call was there to throw.
        case writeFailed
        /// Something could not be read, and no call was there to throw.
        case readFailed
        /// A value was too costly for memory, or the limits on disk cannot be held because nothing may go.
        case limitReached
        /// A value could not be refreshed in the background; the old one is served as long as its terms allow.
        case refreshFailed
        /// Memory was given back.
        case memoryPressure(MemoryPressure)
    }

    /// Why an entry had to make room.
    public enum Eviction: Sendable, Hashable {
        /// There were too many entries.
        case count
        /// The entries came to too many bytes.
        case size
        /// The volume was short of space.
        case freeSpace
        /// A decider chose it.
        case decider
    }

    /// What happened.
    public let kind: Kind

    /// The cache it concerns, where it is one.
    public let cacheName: String?

    /// The key it concerns, where it is one, as text.
    public let key: String?

    /// What happened, in a sentence.
    public let message: String

    /// How many events this stream has lost before this one, because nobody took them in time.
    public internal(set) var lostBefore = 0

    package init(_ kind: Kind, cacheName: String? = nil, key: String? = nil, message: String) {
        self.kind = kind
        self.cacheName = cacheName
        self.key = key
        self.message = message
    }
}
