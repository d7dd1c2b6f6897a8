internal import Foundation

/// Copying a file of the program, of which never more than a megabyte is in memory.
///
/// Safety: the buffer is freed in the call that allocates it, and each descriptor is closed in the call that opens it.
extension FileSystem {
    private static let piece = 1 << 20

    /// What a file of the program was when it was opened.
    private struct Source {
        let file: Int32
        let path: String
        let status: stat

        /// Throws unless the file is as it was opened.
        func requireUnchanged() throws {
            var now = stat()
            guard fstat(file, &now) == 0 else { throw FileSystem.failure("fstat", path) }
            let (old, new) = (FileSystem.Times(status), FileSystem.Times(now))
            guard now.st_size == status.st_size, old == new else { throw StoreError.changed(path) }
        }
    }

    private struct Times: Equatable {
        let numbers: [Int]

        init(_ status: stat) {
            #if canImport(Darwin)
            let (written, changed) = (status.st_mtimespec, status.st_ctimespec)
            #else
            let (written, changed) = (status.st_mtim, status.st_ctim)
            #endif
            numbers = [written.tv_sec, Int(written.tv_nsec), changed.tv_sec, Int(changed.tv_nsec)]
        }
    }

    /// Returns the size of a regular file, to which the path may lead by symbolic links.
    package static func sizeOfFile(_ path: String) throws(StoreError) -> Int64 {
        try StoreError.translating {
            let source = try open(path)
            defer { close(source.file) }
            return Int64(source.status.st_size)
        }
    }

    /// Copies a regular file to a new one, as a clone where the file system makes one, and returns its size and its checksum.
    static func copy(_ path: String, to newPath: String, syncs: Bool) throws -> (size: Int64, checksum: UInt64) {
        let source = try open(path)
        defer { close(source.file) }
        let isCloned = clone(source.file, to: newPath)
        let flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | (isCloned ? 0 : O_CREAT | O_EXCL)
        let file = newPath.withCString { Foundation.open($0, flags, 0o600) }
        guard file >= 0 else { throw failure("create", newPath) }
        defer { close(file) }
        do {
            if isCloned, fchmod(file, 0o600) != 0 { throw failure("fchmod", newPath) }
            let result = try hash(source, isCloned ? nil : file, newPath, reading: isCloned ? file : source.file)
            try source.requireUnchanged()
            if syncs { try sync(file, newPath) }
            return result
        } catch {
            unlink(newPath)
            throw error
        }
    }

    private static func open(_ path: String) throws -> Source {
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
        return fclonefileat(file, AT_FDCWD, newPath, 0) == 0
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

    /// Hashes what is read, and writes it to a file unless that is a clone.
    private static func hash(
        _ source: Source, _ target: Int32?, _ newPath: String, reading file: Int32
    ) throws -> (size: Int64, checksum: UInt64) {
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
            (done, held) = (done + count, held + count)
            if count == 0 || done > size { break }
            let rest = pieces.add(UnsafeRawBufferPointer(start: buffer, count: held))
            memmove(buffer, buffer + rest, held - rest)
            held -= rest
        }
        guard done == size else { throw StoreError.changed(source.path) }
        return (Int64(size), pieces.finish(UnsafeRawBufferPointer(start: buffer, count: held)))
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
