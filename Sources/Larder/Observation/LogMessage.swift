/// One line for the program's log.
public struct LogMessage: Sendable, CustomStringConvertible {
    /// The severity of a message.
    public enum Level: Int, Sendable, Comparable {
        /// A detail that helps to find a fault.
        case debug
        /// Useful information.
        case info
        /// The library handled a problem, but data was lost or the problem persists.
        case warning
        /// An operation failed.
        case error

        /// Returns whether the first level is less severe than the second.
        public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }

    /// The severity of the message.
    public let level: Level

    /// A sentence that describes the event.
    public let text: String

    /// A sentence that describes the event; equal to ``text``.
    public var message: String { text }

    /// The error that caused the message, with its own cause.
    public let error: CacheError?

    package init(_ level: Level, _ text: String, error: CacheError? = nil) {
        self.level = level
        self.text = text
        self.error = error
    }

    /// The text, and the error that caused the message.
    public var description: String { error.map { "\(text) – \($0)" } ?? text }
}
