/// One line for the program's log.
public struct LogMessage: Sendable, CustomStringConvertible {
    /// How much it matters.
    public enum Level: Int, Sendable, Comparable {
        /// For someone who looks for a fault.
        case debug
        /// Worth knowing.
        case info
        /// The library could help itself, but something was lost or is in the way.
        case warning
        /// Something failed.
        case error

        /// Orders by weight.
        public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }

    /// How much it matters.
    public let level: Level

    /// What happened, in a sentence.
    public let text: String

    /// What happened, in a sentence; the same as ``text``.
    public var message: String { text }

    /// The failure behind it, with its cause.
    public let error: CacheError?

    package init(_ level: Level, _ text: String, error: CacheError? = nil) {
        self.level = level
        self.text = text
        self.error = error
    }

    /// The text, and the failure behind it.
    public var description: String { error.map { "\(text) – \($0)" } ?? text }
}
