internal import LarderCSQLite

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

extension FileSystem {
    /// An open folder, by which what stands in it is reached by one name at a time, never through a symbolic link.
    ///
    /// It is the same folder wherever it is moved, and closed with its last reference.
    package final class Folder: Sendable {
        /// The path of the folder that it was reached from, and its name there; put together only when somebody asks.
        private let place: (path: String, name: String?)
        private let descriptor: Int32

        private init(_ descriptor: Int32, _ path: String, _ name: String? = nil) {
            self.descriptor = descriptor
            place = (path, name)
        }

        package var path: String { place.name.map { place.path + "/" + $0 } ?? place.path }

        deinit { close(descriptor) }

        /// The path of the folder that this one is in.
        package var parentPath: String {
            let bytes = path.utf8
            let end = bytes.lastIndex(of: UInt8(ascii: "/")) ?? bytes.startIndex
            return end == bytes.startIndex ? "/" : String(Substring(bytes[..<end]))
        }

        private static let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC

        /// Opens the folder at `path`, in which only the last name must not be a link; nil if nothing stands there.
        package static func at(_ path: String) throws(SystemError) -> Folder? {
            let descriptor = retried { open(path, flags) }
            if descriptor >= 0 { return Folder(descriptor, path) }
            if errno == ENOENT { return nil }
            let error = failure("open", path)
            // Linux says of a link only that it is no folder.
            if error.number == ENOTDIR, try FileSystem.status(path)?.kind == .link {
                throw SystemError(number: ELOOP, call: "open", path: path)
            }
            throw error
        }

        /// Opens a folder in this one; nil if there is none.
        package func folder(_ name: String) throws(SystemError) -> Folder? {
            let found = retried { openat(descriptor, name, Self.flags) }
            if found >= 0 { return Folder(found, path, name) }
            if errno == ENOENT { return nil }
            throw failure("open", self / name)
        }

        /// Makes a folder in this one; false if the name is taken.
        package func makeFolder(_ name: String) throws(SystemError) -> Bool {
            if mkdirat(descriptor, name, 0o700) == 0 { return true }
            if errno == EEXIST { return false }
            throw failure("mkdir", self / name)
        }

        /// Opens a file in this folder; nil if there is none.
        package func file(_ name: String, _ access: OpenFile.Access) throws(SystemError) -> OpenFile? {
            // Without waiting, since what stands there may be a pipe.
            let flags = access.flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
            let found = retried { openat(descriptor, name, flags) }
            if found >= 0 { return OpenFile(descriptor: found, folder: self, name: name) }
            if errno == ENOENT { return nil }
            throw failure("open", self / name)
        }

        /// Opens a file in a folder of this one by the names of both, with one call where the system has one.
        package func file(at path: String, _ access: OpenFile.Access) throws(SystemError) -> OpenFile? {
            let flags = access.flags | O_CLOEXEC | O_NONBLOCK
            let found = retried { larder_open_within(descriptor, path, flags) }
            if found >= 0 { return OpenFile(descriptor: found, folder: self, name: path) }
            if errno == ENOENT { return nil }
            guard errno == ENOSYS || errno == EPERM else { throw failure("open", self / path) }
            let names = path.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 1).map { String(Substring($0)) }
            return try folder(names[0])?.file(names[1], access)
        }

        /// Makes a file in this folder, which must not be there yet.
        package func makeFile(_ name: String) throws(SystemError) -> OpenFile {
            let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
            let made = retried { openat(descriptor, name, flags, 0o600) }
            if made >= 0 { return OpenFile(descriptor: made, folder: self, name: name) }
            throw failure("create", self / name)
        }

        /// What stands in this folder under `name`, a link not followed; nil if nothing does.
        package func status(_ name: String) throws(SystemError) -> FileStatus? {
            var status = stat()
            if fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { return FileStatus(status) }
            if errno == ENOENT { return nil }
            throw failure("fstatat", self / name)
        }

        /// What this folder is.
        package func status() throws(SystemError) -> FileStatus {
            var status = stat()
            if fstat(descriptor, &status) == 0 { return FileStatus(status) }
            throw failure("fstat", path)
        }

        /// Whether it was deleted since it was opened.
        package func isDeleted() throws(SystemError) -> Bool { try status().nameCount == 0 }

        /// Moves what is called `name` to another folder of the volume; false if it is gone, or that folder is.
        package func move(_ name: String, to other: Folder, as newName: String) throws(SystemError) -> Bool {
            if renameat(descriptor, name, other.descriptor, newName) == 0 { return true }
            if errno == ENOENT { return false }
            throw failure("rename", self / name)
        }

        /// Deletes a file, or a link itself; false if it was not there.
        @discardableResult
        package func delete(_ name: String) throws(SystemError) -> Bool {
            if unlinkat(descriptor, name, 0) == 0 { return true }
            if errno == ENOENT { return false }
            throw failure("unlink", self / name)
        }

        /// Deletes a folder in this one if it is empty.
        package func deleteEmptyFolder(_ name: String) throws(SystemError) {
            if unlinkat(descriptor, name, AT_REMOVEDIR) == 0 || [ENOENT, ENOTEMPTY, EEXIST].contains(errno) { return }
            throw failure("rmdir", self / name)
        }

        /// The names in this folder, in no order.
        package func names() throws(SystemError) -> [String] {
            // Of its own, since the place up to which it was read belongs to the descriptor.
            let list = retried { openat(descriptor, ".", Self.flags) }
            guard list >= 0 else { throw failure("open", path) }
            guard let stream = fdopendir(list) else {
                defer { close(list) }
                throw failure("opendir", path)
            }
            defer { closedir(stream) }
            var names: [String] = []
            while true {
                errno = 0
                guard let entry = readdir(stream) else {
                    if errno == 0 { return names }
                    throw failure("readdir", path)
                }
                let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                    String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                }
                if name != "." && name != ".." { names.append(name) }
            }
        }

        /// Tries to be the one who has this folder locked, of all who opened it; the lock ends when it is closed.
        package func lock() throws(SystemError) -> Bool {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
            if errno == EWOULDBLOCK { return false }
            throw failure("flock", path)
        }

        /// Makes sure that what was made, moved and deleted in this folder is on the disk.
        package func sync() throws(SystemError) {
            try FileSystem.sync(descriptor, path)
        }
    }

    /// Brings what `descriptor` leads to onto the disk itself, past the caches of the drive.
    static func sync(_ descriptor: Int32, _ path: String) throws(SystemError) {
        #if canImport(Darwin)
        if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        // Some file systems cannot sync a folder, and then have nothing to sync.
        guard retried({ fsync(descriptor) }) == 0 || errno == EINVAL else { throw failure("fsync", path) }
    }

    /// Calls again what a signal interrupted.
    static func retried(_ call: () -> Int32) -> Int32 {
        while true {
            let result = call()
            if result != -1 || errno != EINTR { return result }
        }
    }
}

/// The path of a name in a folder.
private func / (folder: FileSystem.Folder, name: String) -> String { folder.path + "/" + name }
