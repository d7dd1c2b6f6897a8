#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

// Safety: The name of a directory entry is read while the entry is current, before the next call of `readdir`, and
// up to its zero byte. It is copied into a `String`.

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

    /// When the contents were last changed, likewise.
    package let modifiedAt: (seconds: Int, nanoseconds: Int)

    /// When contents, name or mode were last changed, in seconds and nanoseconds; nobody can set it.
    package let changedAt: (seconds: Int, nanoseconds: Int)

    /// How many names lead to it.
    package let nameCount: Int

    /// Whether its owner may write it.
    package let isWritable: Bool

    init(_ status: stat) {
        kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .folder
            case S_IFLNK: .link
            default: .other
            }
        size = Int64(status.st_size)
        identity = FileIdentity(device: UInt64(truncatingIfNeeded: status.st_dev), inode: UInt64(status.st_ino))
        #if canImport(Darwin)
        modifiedAt = (Int(status.st_mtimespec.tv_sec), Int(status.st_mtimespec.tv_nsec))
        changedAt = (Int(status.st_ctimespec.tv_sec), Int(status.st_ctimespec.tv_nsec))
        #else
        modifiedAt = (Int(status.st_mtim.tv_sec), Int(status.st_mtim.tv_nsec))
        changedAt = (Int(status.st_ctim.tv_sec), Int(status.st_ctim.tv_nsec))
        #endif
        nameCount = Int(status.st_nlink)
        isWritable = status.st_mode & S_IWUSR != 0
    }
}

/// The file system, for the parts of the library that may use it.
///
/// What is made is its owner's alone.
package enum FileSystem {
    /// What stands at `path`; nil if nothing does.
    package static func status(_ path: String) throws(SystemError) -> FileStatus? {
        var status = stat()
        // Handed over by itself, the path would be copied: every commit comes here.
        guard path.withCString({ lstat($0, &status) }) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw failure("lstat", path)
        }
        return FileStatus(status)
    }

    /// Makes the folder at `path` and those above it that are missing, and brings each new one to the disk.
    package static func makeFolders(_ path: String) throws(SystemError) {
        let bytes = Array(path.utf8)
        let parent = String(decoding: bytes[..<(bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0)], as: UTF8.self)
        if mkdir(path, 0o700) != 0 {
            switch errno {
            case EEXIST: return
            case ENOENT:
                guard !parent.isEmpty else { throw failure("mkdir", path) }
                try makeFolders(parent)
                // Another process may have made it in the meantime.
                if mkdir(path, 0o700) != 0 && errno != EEXIST { throw failure("mkdir", path) }
            default: throw failure("mkdir", path)
            }
        }
        // A folder is a name in the one above it, which is on the disk only once that one is synced.
        try sync(parent.isEmpty ? "/" : parent)
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
        guard try status(path) != nil else { return }
        try remove(path.utf8CString.map { $0 })
    }

    /// The same by bytes, since the names in a folder need not be text.
    private static func remove(_ path: [CChar]) throws(SystemError) {
        func fail(_ call: String) -> SystemError {
            failure(call, String(decoding: path.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self))
        }
        if unlink(path) == 0 || errno == ENOENT { return }
        // What Linux and POSIX say of a folder; the second is also said of a link that is somebody else's.
        let refusal = fail("unlink")
        guard refusal.number == EISDIR || refusal.number == EPERM else { throw refusal }
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw refusal }
        guard let folder = fdopendir(descriptor) else {
            defer { close(descriptor) }
            throw fail("opendir")
        }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                Array($0.prefix { $0 != 0 }).map(CChar.init(bitPattern:))
            }
            if name == [46] || name == [46, 46] { continue }
            try remove(path.dropLast() + [47] + name + [0])
        }
        guard rmdir(path) == 0 || errno == ENOENT else { throw fail("rmdir") }
    }

    /// Makes sure that what was made, moved and deleted in the folder is on the disk.
    package static func sync(_ folder: String) throws(SystemError) {
        let descriptor = open(folder, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("open", folder) }
        defer { close(descriptor) }
        try sync(descriptor, folder)
    }

    static func failure(_ call: String, _ path: String) -> SystemError {
        SystemError(number: errno, call: call, path: path)
    }
}
