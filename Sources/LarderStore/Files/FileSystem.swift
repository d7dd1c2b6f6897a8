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

/// The calls for value files, none of which follows a symbolic link in the last part of a path.
///
/// Safety: bytes are read or filled inside the call that lends them. Each descriptor is closed in the call that opens it.
extension FileSystem {
    /// The most that one call is asked for: Darwin refuses 2 GiB.
    private static let step = 1 << 30

    /// Writes a new file, or over the bytes of an old one; if that fails, the file is deleted.
    ///
    /// - Parameter oldSize: The size of the old file; nil for a new one.
    /// - Returns: False if there is no old file that may be written.
    package static func write(
        _ bytes: UnsafeRawBufferPointer, _ path: String, oldSize: Int64?, syncs: Bool
    ) throws(FileError) -> Bool {
        let isNew = oldSize == nil
        let flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (isNew ? O_CREAT | O_EXCL : O_NONBLOCK)
        // The argument alone would be copied.
        let file = path.withCString { open($0, flags, 0o600) }
        guard file >= 0 else { if isNew { throw failure("create", path) } else { return false } }
        defer { close(file) }
        do throws(FileError) {
            var done = 0
            while let start = bytes.baseAddress, done < bytes.count {
                let count = Foundation.write(file, start + done, min(bytes.count - done, step))
                if count >= 0 { done += count } else if errno != EINTR { throw failure("write", path) }
            }
            if oldSize ?? 0 > bytes.count, ftruncate(file, off_t(bytes.count)) != 0 { throw failure("ftruncate", path) }
            if syncs { try sync(file, path) }
        } catch {
            unlink(path)
            throw error
        }
        return true
    }

    /// Makes a file at least so long, of blocks of its own, or leaves it as it was if there is no room for it.
    static func reserve(_ path: String, size: Int64) {
        let file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { return }
        defer { close(file) }
        let oldSize = lseek(file, 0, SEEK_END)
        guard oldSize >= 0, oldSize < size else { return }
        #if canImport(Darwin)
        var blocks = fstore_t(
            fst_flags: UInt32(F_ALLOCATEALL), fst_posmode: F_PEOFPOSMODE, fst_offset: 0,
            fst_length: off_t(size) - oldSize,
            fst_bytesalloc: 0)
        let isReserved = fcntl(file, F_PREALLOCATE, &blocks) == 0 && ftruncate(file, size) == 0
        #else
        let isReserved = posix_fallocate(file, 0, off_t(size)) == 0
        #endif
        if isReserved { return }
        // Some blocks may have been found.
        if oldSize == 0 { unlink(path) } else { _ = ftruncate(file, oldSize) }
    }

    /// Reads a file whole; nil if there is no regular file of this size.
    static func read(_ path: String, size: Int64) throws(FileError) -> Data? {
        guard let (file, found) = try openToRead(path) else { return nil }
        defer { close(file) }
        guard found == size, let count = Int(exactly: size) else { return nil }
        // Not zeroed first.
        guard let bytes = malloc(max(1, count)) else { throw FileError(number: ENOMEM, call: "read", path: path) }
        var (done, last) = (0, 1)
        while done < count && last != 0 {
            last = Foundation.read(file, bytes + done, min(count - done, step))
            if last > 0 { done += last } else if last < 0, errno != EINTR { break }
        }
        let error = last < 0 && done < count ? failure("read", path) : nil
        // A short payload is copied and its memory freed at once, so the memory is filled before.
        let data = Data(bytesNoCopy: bytes, count: count, deallocator: .free)
        if let error { throw error }
        return done == count ? data : nil
    }

    /// Takes the owner's right to write from a file; false if there is no regular file.
    static func makeReadOnly(_ path: String) throws(FileError) -> Bool {
        guard let (file, _) = try openToRead(path) else { return false }
        defer { close(file) }
        guard fchmod(file, 0o400) == 0 else { throw failure("fchmod", path) }
        return true
    }

    /// Lets everyone read a file or a folder.
    static func makeReadable(_ path: String) throws(FileError) {
        let isFolder = try status(path)?.isFolder == true
        guard chmod(path, isFolder ? 0o755 : 0o644) == 0 else { throw failure("chmod", path) }
    }

    /// Returns whether there is something at a path, to which it may lead by symbolic links.
    static func isThere(_ path: String) throws(FileError) -> Bool {
        if access(path, F_OK) == 0 { return true }
        if errno == ENOENT { return false }
        throw failure("access", path)
    }

    private static func openToRead(_ path: String) throws(FileError) -> (file: Int32, size: Int64)? {
        // Does not wait for a writer: what stands there may be a pipe.
        let file = path.withCString { open($0, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK) }
        guard file >= 0 else {
            if [ENOENT, ELOOP, ENXIO, ENOTDIR].contains(errno) { return nil }
            throw failure("open", path)
        }
        var status = stat()
        if fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG { return (file, Int64(status.st_size)) }
        close(file)
        return nil
    }

    package static func rename(_ path: String, to newPath: String) throws(FileError) -> Bool {
        if Foundation.rename(path, newPath) == 0 { return true }
        if errno == ENOENT { return false }
        throw failure("rename", path)
    }

    /// Gives a file a second name, unless there is no file or the name is taken.
    static func link(_ path: String, to newPath: String) throws(FileError) {
        if Foundation.link(path, newPath) != 0 && ![ENOENT, EEXIST].contains(errno) { throw failure("link", path) }
    }

    /// Deletes a folder, unless something is in it.
    static func deleteEmptyFolder(_ path: String) { rmdir(path) }

    package static func delete(_ path: String) throws(FileError) {
        if unlink(path) != 0 && errno != ENOENT { throw failure("unlink", path) }
    }

    package static func names(in folder: String) throws(FileError) -> [String] {
        do { return try FileManager.default.contentsOfDirectory(atPath: folder) } catch {
            throw FileError(number: EIO, call: "opendir", path: folder)
        }
    }
}

/// Copying a file of the program, of which never more than a megabyte is in memory.
///
/// Safety: the buffer is freed in the call that allocates it, and each descriptor is closed in the call that opens it.
extension FileSystem {
    private static let piece = 1 << 20

    /// A file of the program as it was when it was opened.
    struct Source: ~Copyable {
        fileprivate let file: Int32
        fileprivate let path: String
        fileprivate let status: stat

        deinit { close(file) }

        var size: Int64 { Int64(status.st_size) }

        /// Throws if the bytes may have changed since: its size or the moment of its last write.
        fileprivate func requireUnchanged() throws {
            var now = stat()
            guard fstat(file, &now) == 0 else { throw FileSystem.failure("fstat", path) }
            #if canImport(Darwin)
            let (old, new) = (status.st_mtimespec, now.st_mtimespec)
            #else
            let (old, new) = (status.st_mtim, now.st_mtim)
            #endif
            let isSame = now.st_size == status.st_size && old.tv_sec == new.tv_sec && old.tv_nsec == new.tv_nsec
            if !isSame { throw StoreError.changed(path) }
        }

        /// Returns all bytes.
        func read() throws -> Data {
            var bytes = Data()
            _ = try FileSystem.hash(self, nil, path, reading: file) { bytes.append(contentsOf: $0) }
            try requireUnchanged()
            return bytes
        }
    }

    /// Copies a file to a new one, as a clone where the file system makes one, and returns its checksum.
    ///
    /// - Parameter requireRoom: Called before bytes are written.
    static func copy(
        _ source: borrowing Source, to newPath: String, syncs: Bool, requireRoom: () throws -> Void
    ) throws -> UInt64 {
        let isCloned = clone(source.file, to: newPath)
        do {
            if isCloned { try source.requireUnchanged() } else { try requireRoom() }
            let flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | (isCloned ? 0 : O_CREAT | O_EXCL)
            let file = newPath.withCString { Foundation.open($0, flags, 0o600) }
            guard file >= 0 else { throw failure("create", newPath) }
            defer { close(file) }
            // A sweep deletes old files that no row names.
            if isCloned, futimes(file, nil) != 0 { throw failure("futimes", newPath) }
            let checksum = try hash(source, isCloned ? nil : file, newPath, reading: isCloned ? file : source.file)
            if !isCloned { try source.requireUnchanged() }
            if syncs { try sync(file, newPath) }
            return checksum
        } catch {
            unlink(newPath)
            throw error
        }
    }

    /// Opens a regular file, to which the path may lead by symbolic links.
    static func source(_ path: String) throws -> Source {
        // Does not wait for a writer: what stands there may be a pipe.
        let file = path.withCString { Foundation.open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard file >= 0 else { throw failure("open", path) }
        var status = stat()
        if fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
            return Source(file: file, path: path, status: status)
        }
        close(file)
        throw StoreError(.storageUnavailable, "\(path) is no regular file. Name one, or read the bytes yourself.")
    }

    private static func clone(_ file: Int32, to newPath: String) -> Bool {
        #if canImport(Darwin)
        guard fclonefileat(file, AT_FDCWD, newPath, UInt32(CLONE_NOOWNERCOPY)) == 0 else { return false }
        // The clone of a file that may not be written is one too. A link that has taken its place is not followed.
        if fchmodat(AT_FDCWD, newPath, 0o600, AT_SYMLINK_NOFOLLOW) == 0 { return true }
        unlink(newPath)
        return false
        #else
        let clone = newPath.withCString {
            Foundation.open($0, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        }
        guard clone >= 0 else { return false }
        // FICLONE of <linux/fs.h>.
        let isCloned = ioctl(clone, 0x4004_9409, file) == 0
        close(clone)
        if !isCloned { unlink(newPath) }
        return isCloned
        #endif
    }

    /// Hashes what is read, writes it to a file unless that is a clone, and gives it to a closure.
    private static func hash(
        _ source: borrowing Source, _ target: Int32?, _ newPath: String, reading file: Int32,
        _ body: (UnsafeRawBufferPointer) -> Void = { _ in }
    ) throws -> UInt64 {
        let size = Int(source.status.st_size)
        var (pieces, done, held) = (Checksum.Pieces(count: size), 0, 0)
        guard let buffer = malloc(piece) else { throw FileError(number: ENOMEM, call: "read", path: source.path) }
        defer { free(buffer) }
        while true {
            let count = Foundation.read(file, buffer + held, piece - held)
            if count < 0 {
                if errno == EINTR { continue }
                throw failure("read", source.path)
            }
            if let target { try write(buffer + held, count, target, newPath) }
            body(UnsafeRawBufferPointer(start: buffer + held, count: count))
            (done, held) = (done + count, held + count)
            if count == 0 || done > size { break }
            let rest = pieces.add(UnsafeRawBufferPointer(start: buffer, count: held))
            memmove(buffer, buffer + rest, held - rest)
            held -= rest
        }
        guard done == size else { throw StoreError.changed(source.path) }
        return pieces.finish(UnsafeRawBufferPointer(start: buffer, count: held))
    }

    private static func write(_ bytes: UnsafeMutableRawPointer, _ count: Int, _ file: Int32, _ path: String) throws {
        var done = 0
        while done < count {
            let written = Foundation.write(file, bytes + done, count - done)
            if written >= 0 { done += written } else if errno != EINTR { throw failure("write", path) }
        }
    }
}

extension StoreError {
    fileprivate static func changed(_ path: String) -> StoreError {
        StoreError(.storageUnavailable, "\(path) has changed while it was copied. Try again when nothing writes to it.")
    }
}
