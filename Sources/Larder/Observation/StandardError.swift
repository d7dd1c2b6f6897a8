internal import Foundation

/// The standard error of the process.
enum StandardError {
    /// Writes a text in one call, so that lines of several threads do not mix.
    static func write(_ text: String) {
        var text = text
        text.withUTF8 { _ = Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
