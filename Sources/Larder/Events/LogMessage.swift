internal import Foundation
internal import LarderStore

#if canImport(os)
internal import os
#endif

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

    /// The text, and what the error that caused the message says beyond it.
    public var description: String {
        guard let error, !text.contains(error.reason) else { return text }
        return "\(text) \(error.message)"
    }
}

extension LogMessage {
    /// Writes warnings and errors where the system expects them: on Apple's platforms to the unified log, on others to standard
    /// error, a line each.
    public static let standardLog: @Sendable (LogMessage) -> Void = { message in
        if message.level < .warning { return }
        #if canImport(os)
        let log = Logger(subsystem: "larder", category: "cache")
        // A message names paths and keys, which a log that is sent in shows with a profile or a debugger alone.
        let code = message.error.map { "\($0.code)" } ?? "\(message.level)"
        if message.level == .warning {
            log.warning("\(code, privacy: .public): \(message.description, privacy: .private)")
        } else {
            log.error("\(code, privacy: .public): \(message.description, privacy: .private)")
        }
        #else
        let line = message.description.split(whereSeparator: \.isNewline).joined(separator: " ")
        StandardError.write("larder: \(message.level): \(line)\n")
        #endif
    }
}

/// The standard error of the process.
enum StandardError {
    /// Writes a text in one call, so that lines of several threads do not mix.
    static func write(_ text: String) {
        var text = text
        text.withUTF8 { _ = Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
