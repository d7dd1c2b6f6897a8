#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

extension FileSystem {
    /// Whether the volume that holds `path` is another machine's, where shared memory between processes cannot work.
    package static func isOnNetwork(_ path: String) throws(SystemError) -> Bool {
        #if canImport(Darwin)
        var volume = statfs()
        guard statfs(path, &volume) == 0 else { throw failure("statfs", path) }
        return volume.f_flags & UInt32(MNT_LOCAL) == 0
        #else
        guard let device = try status(path)?.identity.device else { return false }
        // Without /proc nobody can tell; then the log's own refusal has to do.
        guard let table = try contents("/proc/self/mountinfo") else { return false }
        return isNetwork(device: device, mounts: String(decoding: table, as: UTF8.self))
        #endif
    }

    /// Whether `mounts`, in the form of Linux's `mountinfo`, shows a network file system as the one of `device`.
    package static func isNetwork(device: UInt64, mounts: String) -> Bool {
        // The C library's packing of the two numbers: 8 bits of minor, 12 of major, then the rest of both.
        let major = (device >> 8 & 0xfff) | (device >> 32 & ~0xfff)
        let minor = (device & 0xff) | (device >> 12 & ~0xff & 0xffff_ffff)
        for line in mounts.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count > 4, fields[2] == "\(major):\(minor)" else { continue }
            guard let dash = fields.firstIndex(of: "-"), dash + 1 < fields.count else { continue }
            return networkTypes.contains(String(fields[dash + 1]))
        }
        return false
    }

    private static let networkTypes: Set<String> = [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "coda", "lustre", "gfs2", "ocfs2", "fuse.sshfs",
        "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "davfs", "fuse.davfs2",
    ]

    /// The bytes of a file, the first `limit` of them; nil if there is none.
    package static func contents(_ path: String, limit: Int = .max) throws(SystemError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw failure("open", path)
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count < limit {
            let count = read(descriptor, &piece, min(piece.count, limit - bytes.count))
            if count == 0 { break }
            if count > 0 { bytes += piece[..<count] } else if errno != EINTR { throw failure("read", path) }
        }
        return bytes
    }
}

extension FileSystem {
    /// The bytes of the volume that holds `path`: all of them, and those that we may still write.
    package static func space(_ path: String) throws(SystemError) -> (total: Int64, free: Int64) {
        var volume = statvfs()
        guard statvfs(path, &volume) == 0 else { throw failure("statvfs", path) }
        func bytes(_ blocks: UInt64) -> Int64 {
            let (bytes, isTooMuch) = blocks.multipliedReportingOverflow(by: UInt64(volume.f_frsize))
            return isTooMuch ? .max : Int64(clamping: bytes)
        }
        return (bytes(UInt64(volume.f_blocks)), bytes(UInt64(volume.f_bavail)))
    }
}
