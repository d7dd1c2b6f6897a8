import Foundation

/// A volume in memory of a few pages, seen only by the program that is run on it.
package enum SmallVolume {
    /// Whether this system lets us make one.
    package static let isAvailable = Namespaces.allow(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"])

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
