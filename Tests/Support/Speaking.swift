import Foundation

/// Prints a line at once: what a killed process has said must have arrived.
package func say(_ words: Any...) {
    let line = words.map { "\($0)" }.joined(separator: " ") + "\n"
    FileHandle.standardOutput.write(Data(line.utf8))
}
