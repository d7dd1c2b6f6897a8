/// Why a read of a key gives what it gives; see `Cache.explain(_:)`.
public struct Presence: Sendable, Hashable, CustomStringConvertible {
    /// What there is of a key.
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// Memory has the value, and serves it.
        case inMemory
        /// The disk has the value. The next read puts it into memory.
        case onDisk
        /// The entry has expired, and is not deleted yet.
        case expired
        /// There is no entry.
        case absent
        /// The entry was written under another version or codec, and waits to be deleted.
        case otherVersion
        /// The cache was opened under another version or codec since, or it was removed.
        case superseded
        /// The stored value does not decode as the type of the cache.
        case undecodable
        /// The entry does not fit its checksum, or its file is missing or damaged.
        case damaged
        /// The manager is suspended.
        case suspended
        /// The manager was closed.
        case closed
    }

    /// What there is of the key.
    public let kind: Kind

    /// What is known of the entry; nil if there is none.
    public let metadata: EntryMetadata?

    /// When and why the key has left the cache, as far as this process knows, the latest first.
    ///
    /// The last removals are kept, as many as ``CacheOptions/remembersRemovals`` says, and end with the process. A key that left elsewhere is not
    /// known, unless memory had a copy.
    public let history: [Departure]

    /// A sentence that says what there is, and what to do if that is not what you expect.
    public let description: String
}
