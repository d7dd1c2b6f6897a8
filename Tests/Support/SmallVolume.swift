import Foundation

/// A volume in memory of a few pages, seen only by the program that is run on it.
package enum SmallVolume {
    /// Whether this system lets us make one.
    package static let isAvailable: Bool = {
        #if os(Linux)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
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
    }()

    /// What stands before a program's words so that `folder` is a volume of `kibibytes`, of which the file `ballast`
    /// takes `ballast`.
    package static func wrapper(_ folder: String, kibibytes: Int, ballast: Int) -> [String] {
        [
            "unshare", "-rm", "sh", "-c",
            """
            mount -t tmpfs -o size=\(kibibytes)k none "$0" && head -c \(ballast * 1024) /dev/zero >"$0/ballast"
            exec "$@"
            """, folder,
        ]
    }
}
