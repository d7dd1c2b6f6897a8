/// A failure, with the store, cache and key that it concerns, and a remedy.
///
/// Every throwing call of a manager, a cache or a snapshot throws this type. An error of the caller's closure is
/// rethrown unchanged, and a cancelled wait throws `CancellationError`.
public struct CacheError: Error, Sendable {
    /// The kind of the failure, for decisions in code.
    public let code: Code

    /// A sentence with the failed action, the store, cache and key, and the remedy.
    public let message: String

    /// The error that caused this one, if there was one.
    public let underlying: (any Error)?

    /// SQLite's extended result code, if SQLite reported the failure.
    public let sqliteCode: Int32?

    package init(_ code: Code, _ message: String, underlying: (any Error)? = nil, sqliteCode: Int32? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
        self.sqliteCode = sqliteCode
    }
}

extension CacheError: CustomStringConvertible {
    /// The code, the message, and the cause.
    public var description: String {
        var text = "\(code): \(message)"
        if let sqliteCode { text += " [SQLite \(sqliteCode)]" }
        if let underlying { text += " (\(underlying))" }
        return text
    }
}
