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
