import Foundation

/// What this system lets a process have for itself alone.
enum Namespaces {
    /// Whether these words, run as a command, succeed; never on other systems than Linux.
    static func allow(_ words: [String]) -> Bool {
        #if os(Linux)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        process.standardError = FileHandle.nullDevice
        do {
            try process.run()
        } catch {
            return false
        }
        process.waitUntilExit()
        return process.terminationStatus == 0
        #else
        return false
        #endif
    }
}
