/// A failure, with the store, cache and key that it concerns, and a remedy.
///
/// Every throwing call of a manager, a cache or a snapshot throws this type. An error of the caller's closure is
/// rethrown unchanged, and a cancelled wait throws `CancellationError`.
///
/// Doc comments name these sets of codes:
///
/// - A *read error* is `.closed`, `.suspended`, `.busy`, `.corrupt`, `.storageUnavailable`, `.newerSchema`, or
///   `.encodingFailed` for the key. In a store in memory, a read inside the body of a transaction also throws `.reentrant`.
/// - A *write error* is a read error, or `.readOnly`, `.superseded`, `.storageFull`, `.tooLarge`, or `.encodingFailed` for the
///   value. Inside the body of `update` or `transaction`, it is `.reentrant`.
/// - A *load error* is the error of the closure, `CancellationError`, `.recursiveGeneration`, a read error, or, for a cache that
///   cannot be written to, a write error.
/// - An *opening error* is `.invalidName`, `.invalidConfiguration`, `.foreignFile`, `.newerSchema`, `.readOnly`, `.storageFull`,
///   `.storageUnavailable`, `.busy` or `.corrupt`.
public struct CacheError: Error, Sendable {
    /// The kind of the failure, for decisions in code.
    public let code: Code

    /// A sentence with the failed action, the store, cache and key, and the remedy.
    public let message: String

    /// The error that caused this one, if there was one.
    public let underlying: (any Error)?

    /// SQLite's extended result code, if SQLite reported the failure.
    public let sqliteCode: Int32?

    /// Creates an error, for tests of a program's own error paths.
    ///
    /// - Parameters:
    ///   - code: The kind of the failure.
    ///   - message: A sentence.
    ///   - underlying: The error that caused this one, if there was one.
    ///   - sqliteCode: SQLite's extended result code, if SQLite reported the failure.
    public init(_ code: Code, _ message: String = "", underlying: (any Error)? = nil, sqliteCode: Int32? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
        self.sqliteCode = sqliteCode
    }
}

extension CacheError: CustomStringConvertible {
    /// The code, the message, and what the cause says beyond it.
    public var description: String {
        var text = "\(code): \(message)"
        if let sqliteCode { text += " [SQLite \(sqliteCode)]" }
        if let underlying, !message.contains("\(underlying)") { text += " (\(underlying))" }
        return text
    }

    /// The part of the message that tells the cause.
    var reason: String { underlying.map { "\($0)" }.flatMap { message.contains($0) ? $0 : nil } ?? message }
}

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
        /// A load has taken longer than ``GenerationPolicy/timeout``, and was ended.
        public static let timedOut = Code("timedOut")
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

extension CacheError {
    /// The error of a load that has taken too long.
    static func timedOut(_ policy: GenerationPolicy, _ subject: String) -> CacheError {
        CacheError(
            .timedOut,
            "\(subject) was not loaded within \(policy.timeout ?? .zero). Try again, or allow a longer timeout in the policy."
        )
    }
}
