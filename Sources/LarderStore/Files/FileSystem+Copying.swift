internal import Foundation

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
