internal import Foundation

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
