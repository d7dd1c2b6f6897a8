package import Foundation

/// The program that writes down, and lets fail, another one's system calls.
package enum Strace {
    private static let path = "/usr/bin/strace"

    /// A Boolean value that indicates whether tests may use it: it is installed, and long tests are enabled.
    ///
    /// So the short tests are the same on every machine.
    package static var isAvailable: Bool {
        LongTests.areEnabled && FileManager.default.isExecutableFile(atPath: path) && !ChildProcess.isSanitized
    }

    /// What stands before a program's words, so that it and what it starts are followed, by these options.
    package static func wrapper(_ options: String..., log: URL? = nil) -> [String] {
        [path, "-f", "-o", log?.path ?? "/dev/null"] + options
    }
}
