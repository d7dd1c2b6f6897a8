extension CacheError {
    /// The kind of a failure; later releases may add members, so a `switch` needs a `default`.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name of the member.
        public let description: String

        private init(_ name: String) {
            description = name
        }

        /// The name of a store or a cache cannot be used.
        public static let invalidName = Code("invalidName")
        /// A number or an option makes no sense, or a handle belongs to another store.
        public static let invalidConfiguration = Code("invalidConfiguration")
        /// The file system refuses access: missing permission, a missing disk, or a path that is no file.
        public static let storageUnavailable = Code("storageUnavailable")
        /// The disk is full; stored entries can still be read and removed.
        ///
        /// A set or a load may have evicted entries before it throws this, see ``CacheOptions/onFullDisk``.
        public static let storageFull = Code("storageFull")
        /// Another connection held the store longer than the busy timeout.
        public static let busy = Code("busy")
        /// The database is damaged.
        public static let corrupt = Code("corrupt")
        /// The file is another program's database or no snapshot, and was not changed.
        public static let foreignFile = Code("foreignFile")
        /// The store, or a snapshot, was written by a newer release of the library.
        public static let newerSchema = Code("newerSchema")
        /// The store was opened read-only, and the call would write to it.
        public static let readOnly = Code("readOnly")
        /// A key or a value could not be encoded.
        public static let encodingFailed = Code("encodingFailed")
        /// A stored value does not decode as the requested type.
        public static let undecodable = Code("undecodable")
        /// A live handle uses the same cache with other types, or a snapshot has other types.
        public static let typeMismatch = Code("typeMismatch")
        /// The cache was opened with another version or codec since, or it was removed.
        public static let superseded = Code("superseded")
        /// A closure that loads a key asks for a value of the same key, directly or through other loads.
        public static let recursiveGeneration = Code("recursiveGeneration")
        /// A plain write was called inside a call that already holds the write lock.
        public static let reentrant = Code("reentrant")
        /// The manager was closed.
        public static let closed = Code("closed")
        /// The manager is suspended; see `CacheManager.suspend()`.
        public static let suspended = Code("suspended")
        /// The value is too large to be stored.
        public static let tooLarge = Code("tooLarge")
    }
}
