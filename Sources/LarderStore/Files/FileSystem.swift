package import Foundation

/// A call of the file system that failed.
package struct FileError: Error, Sendable, CustomStringConvertible {
    package let number: Int32
    package let call: String
    package let path: String

    package init(number: Int32, call: String, path: String) {
        (self.number, self.call, self.path) = (number, call, path)
    }

    package var description: String { "\(call) \(path): \(String(cString: strerror(number)))" }

    /// A Boolean value that indicates whether the disk is full, or the user's share of it.
    package var isAboutRoom: Bool { number == ENOSPC || number == EDQUOT }

    var isAboutPermission: Bool { [EACCES, EPERM, EROFS].contains(number) }
}

/// The identity of a file: the same as long as the file is not replaced at its path.
package struct FileIdentity: Hashable, Sendable {
    let device: UInt64
    let inode: UInt64
}

/// The file system calls of a store.
///
/// New files and folders are for their owner alone.
package enum FileSystem {
    package struct Status: Sendable {
        /// A Boolean value that indicates whether it is a regular file, and no symbolic link.
        package let isFile: Bool
        let isFolder: Bool
        package let identity: FileIdentity
        let size: Int64
        /// Milliseconds since 1970.
        package let modifiedAt: Int64
        /// A Boolean value that indicates whether it is a file that its owner may write, without another name.
        let isChangeable: Bool
    }

    /// Returns the status of what is at `path`, without following a symbolic link; nil if there is nothing.
    package static func status(_ path: String) throws(FileError) -> Status? {
        var status = stat()
        guard path.withCString({ lstat($0, &status) }) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw failure("lstat", path)
        }
        return Status(status)
    }

    /// Returns what a symbolic link names; nil if there is no link at the path.
    static func target(_ path: String) throws(FileError) -> String? {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &bytes, bytes.count)
        if count < 0 { if errno == EINVAL { return nil } else { throw failure("readlink", path) } }
        return String(decoding: bytes.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Creates the folder at `path` and the missing ones above it, and syncs each new one in its parent.
    package static func makeFolders(_ path: String) throws(FileError) {
        let parent = folder(of: path)
        if mkdir(path, 0o700) != 0 {
            switch errno {
            case EEXIST: return
            case ENOENT where parent != path:
                try makeFolders(parent)
                // Another process can have created it in the meantime.
                if mkdir(path, 0o700) != 0 && errno != EEXIST { throw failure("mkdir", path) }
            default: throw failure("mkdir", path)
            }
        }
        try sync(parent)
    }

    /// Returns the path of a folder without symbolic links; nil if there is no folder.
    package static func resolved(_ folder: String) throws(FileError) -> String? {
        guard let path = realpath(folder, nil) else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw failure("realpath", folder)
        }
        defer { free(path) }
        guard let text = String(validatingCString: path) else {
            throw FileError(number: EILSEQ, call: "realpath", path: folder)
        }
        return text
    }

    /// Creates an empty file.
    ///
    /// Does nothing if something is at the path.
    package static func makeFile(_ path: String) throws(FileError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        if descriptor < 0 && errno != EEXIST { throw failure("create", path) }
        if descriptor >= 0 { close(descriptor) }
    }

    /// Writes the names in a folder to the disk.
    package static func sync(_ folder: String) throws(FileError) {
        let descriptor = open(folder, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("open", folder) }
        defer { close(descriptor) }
        try sync(descriptor, folder)
    }

    /// Writes the bytes of an open file, or the names of an open folder, to the disk.
    static func sync(_ descriptor: Int32, _ path: String) throws(FileError) {
        #if canImport(Darwin)
        // Past the cache of the drive.
        if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        guard [ENOTSUP, EINVAL].contains(errno) else { throw failure("fcntl", path) }
        #endif
        // EINVAL: the file system of the folder cannot sync it.
        if fsync(descriptor) != 0 && errno != EINVAL { throw failure("fsync", path) }
    }

    /// Returns the bytes that may still be written to the disk of `path`.
    static func freeSpace(_ path: String) throws(FileError) -> Int64 {
        #if canImport(Darwin)
        // The counts of `statvfs` have 32 bits there.
        var space = statfs()
        guard path.withCString({ statfs($0, &space) }) == 0 else { throw failure("statfs", path) }
        let (blocks, size) = (UInt64(space.f_bavail), UInt64(space.f_bsize))
        #else
        var space = statvfs()
        guard path.withCString({ statvfs($0, &space) }) == 0 else { throw failure("statvfs", path) }
        let (blocks, size) = (UInt64(space.f_bavail), UInt64(space.f_frsize))
        #endif
        let (bytes, isTooMuch) = blocks.multipliedReportingOverflow(by: size)
        return isTooMuch ? .max : Int64(clamping: bytes)
    }

    package static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Returns the last part of a path.
    static func name(of path: String) -> Substring {
        path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[path.utf8.index(after: $0)...] } ?? path[...]
    }

    static func failure(_ call: String, _ path: String) -> FileError {
        FileError(number: errno, call: call, path: path)
    }
}

extension FileSystem.Status {
    /// Returns a moment in milliseconds, the first or last one that there is if it is beyond.
    ///
    /// Some file systems keep any number of seconds, and a program can set it.
    package static func milliseconds(_ time: timespec) -> Int64 {
        let (milliseconds, isOut) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1000)
        if isOut { return time.tv_sec < 0 ? .min : .max }
        return milliseconds.addingSaturated(Int64(time.tv_nsec) / 1_000_000)
    }

    init(_ status: stat) {
        #if canImport(Darwin)
        let time = status.st_mtimespec
        #else
        let time = status.st_mtim
        #endif
        isFile = status.st_mode & S_IFMT == S_IFREG
        isFolder = status.st_mode & S_IFMT == S_IFDIR
        identity = FileIdentity(status)
        size = Int64(status.st_size)
        modifiedAt = Self.milliseconds(time)
        isChangeable = isFile && status.st_nlink == 1 && status.st_mode & S_IWUSR != 0
    }
}

extension FileIdentity {
    init(_ status: stat) {
        self.init(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
    }
}
