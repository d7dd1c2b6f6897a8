import Foundation

/// A control group of our own in which memory is scarce, and nowhere else.
package enum MemoryGroup {
    /// The hierarchy that limits memory, and the name of its limit; nil where this process may make no group in it.
    private static let hierarchy: (folder: URL, limit: String)? = {
        let root = URL(fileURLWithPath: "/sys/fs/cgroup")
        for (folder, limit) in [
            (root.appendingPathComponent("memory"), "memory.limit_in_bytes"), (root, "memory.max"),
        ] {
            let probe = folder.appendingPathComponent("larder-test-\(UUID().uuidString)")
            guard mkdir(probe.path, 0o700) == 0 else { continue }
            let isLimited = access(probe.appendingPathComponent(limit).path, W_OK) == 0
            guard rmdir(probe.path) == 0, isLimited else { continue }
            return (folder, limit)
        }
        return nil
    }()

    package static var isAvailable: Bool { hierarchy != nil }

    /// Memory could not be made scarce.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        fileprivate init(_ description: String) { self.description = description }
    }

    /// Writes a file, and deletes it, in a group that has less memory than that: the kernel makes the writer wait, and
    /// ends it where the volume takes the file too slowly.
    package static func writeFile(mebibytes: Int, limit: Int) throws {
        guard let hierarchy else { throw Failure("no control group limits memory") }
        let group = hierarchy.folder.appendingPathComponent("larder-test-\(UUID().uuidString)")
        let folder = try TemporaryFolder()
        guard mkdir(group.path, 0o700) == 0 else { throw Failure("mkdir \(group.path): error \(errno)") }
        defer { rmdir(group.path) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = [
            "-c",
            """
            echo \(limit << 20) >"$0/\(hierarchy.limit)" && echo $$ >"$0/cgroup.procs" || exit 1
            exec head -c \(mebibytes << 20) /dev/zero >"$1"
            """, group.path, folder("file").path,
        ]
        try process.run()
        process.waitUntilExit()
        let (reason, status) = (process.terminationReason, process.terminationStatus)
        let isKilled = reason == .uncaughtSignal && status == SIGKILL
        guard status == 0 || isKilled else { throw Failure("the writer in \(group.path) ended with \(status)") }
    }
}
