/// What went wrong, on what, and what can be done about it.
///
/// Every throwing call of a manager, a cache or a snapshot throws this type. An error of a closure of the caller's passes
/// through untouched, and a cancelled wait throws `CancellationError`.
public struct CacheError: Error, Sendable {
    /// The kind of failure, to decide by.
    public let code: Code

    /// What failed, on which store, cache and key, and what to do.
    public let message: String

    /// The error that caused this one, if there was one.
    public let underlying: (any Error)?

    /// SQLite's extended result code, where SQLite reported the failure.
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
