#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// A file system call that failed.
package struct SystemError: Error, Sendable, CustomStringConvertible {
    package let number: Int32
    package let call: String
    package let path: String

    package var description: String { "\(call) \(path): \(String(cString: strerror(number)))" }
}

/// Which file a path leads to: the same as long as nobody moved, deleted or replaced it.
package struct FileIdentity: Hashable, Sendable {
    let device: UInt64
    let inode: UInt64
}

/// What stands at a path, a symbolic link not followed.
package struct FileStatus: Sendable {
    package enum Kind: Sendable { case file, folder, link, other }

    package let kind: Kind
    package let size: Int64
    package let identity: FileIdentity
}

/// The file system, for the parts of the library that may use it.
///
/// What is made is its owner's alone.
package enum FileSystem {
    /// What stands at `path`; nil if nothing does.
    package static func status(_ path: String) throws(SystemError) -> FileStatus? {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw failure("lstat", path)
        }
        let kind: FileStatus.Kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .folder
            case S_IFLNK: .link
            default: .other
            }
        return FileStatus(
            kind: kind, size: Int64(status.st_size),
            identity: FileIdentity(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino)))
    }

    /// Makes the folder at `path` and those above it that are missing.
    package static func makeFolders(_ path: String) throws(SystemError) {
        if mkdir(path, 0o700) == 0 { return }
        switch errno {
        case EEXIST: return
        case ENOENT:
            let parent = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
            guard !parent.isEmpty else { throw failure("mkdir", path) }
            try makeFolders(parent)
            // Another process may have made it meanwhile.
            if mkdir(path, 0o700) != 0 && errno != EEXIST { throw failure("mkdir", path) }
        default: throw failure("mkdir", path)
        }
    }

    /// Makes an empty file; false if something stands there already.
    package static func makeFile(_ path: String) throws(SystemError) -> Bool {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            if errno == EEXIST { return false }
            throw failure("create", path)
        }
        close(descriptor)
        return true
    }

    /// Moves a file or folder within its folder.
    package static func move(_ path: String, to target: String) throws(SystemError) {
        guard rename(path, target) == 0 else { throw failure("rename", path) }
    }

    /// The path without symbolic links, `.` and `..`.
    package static func resolved(_ path: String) throws(SystemError) -> String {
        guard let found = realpath(path, nil) else { throw failure("realpath", path) }
        defer { free(found) }
        return String(cString: found)
    }

    /// The names in a folder, in no order.
    package static func names(in path: String) throws(SystemError) -> [String] {
        guard let folder = opendir(path) else { throw failure("opendir", path) }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    /// Deletes what stands at `path`, a folder with all that is in it; a link is deleted, not followed.
    package static func remove(_ path: String) throws(SystemError) {
        guard let status = try status(path) else { return }
        if status.kind == .folder {
            for name in try names(in: path) { try remove(path + "/" + name) }
            guard rmdir(path) == 0 || errno == ENOENT else { throw failure("rmdir", path) }
        } else {
            guard unlink(path) == 0 || errno == ENOENT else { throw failure("unlink", path) }
        }
    }

    static func failure(_ call: String, _ path: String) -> SystemError {
        SystemError(number: errno, call: call, path: path)
    }
}
