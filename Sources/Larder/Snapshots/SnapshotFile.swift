internal import Foundation

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// A file that takes another's place in one step, once it is complete and on the disk.
///
/// It is written next to the old one under a name of its own: `.larder-`, 16 digits for its target's name and a UUID.
/// It is locked (`flock`) until it has the old one's name. If the process dies before ``commit()``, the old file is
/// untouched, and the new one is no longer locked: the next save to the same place deletes it.
final class SnapshotFile {
    private let url: URL
    private let temporary: URL
    private var handle: FileHandle?
    private var buffer = Data()

    init(replacing url: URL) throws(CacheError) {
        self.url = url
        let folder = url.deletingLastPathComponent()
        let prefix = Self.prefix(url)
        Self.deleteAbandoned(prefix, in: folder)
        while true {
            let file = folder.appendingPathComponent(prefix + UUID().uuidString)
            let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw Self.failure(errno, url) }
            let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            guard Self.isHeld(descriptor) else { continue }
            temporary = file
            self.handle = handle
            return
        }
    }

    deinit {
        if handle != nil { unlink(temporary.path) }
    }

    func write(_ bytes: Data) throws(CacheError) {
        buffer.append(bytes)
        if buffer.count >= 1 << 18 { try flush() }
    }

    /// Puts the file in the place of the old one, after all of it has reached the disk.
    func commit() throws(CacheError) {
        try flush()
        try wrapping { try $0.synchronize() }
        guard rename(temporary.path, url.path) == 0 else { throw Self.failure(errno, url) }
        // Closes the file: not before the rename, since it would not be locked then.
        handle = nil
        // The new name reaches the disk with the folder; where that cannot be synced, the old file is still whole.
        let folder = open(url.deletingLastPathComponent().path, O_RDONLY | O_CLOEXEC)
        if folder >= 0 {
            fsync(folder)
            close(folder)
        }
    }

    private func flush() throws(CacheError) {
        try wrapping { try $0.write(contentsOf: buffer) }
        buffer.removeAll(keepingCapacity: true)
    }

    private func wrapping(_ body: (FileHandle) throws -> Void) throws(CacheError) {
        guard let handle else { return }
        do {
            try body(handle)
        } catch {
            let isFull = (error as? CocoaError)?.code == .fileWriteOutOfSpace
            throw CacheError(
                isFull ? .storageFull : .storageUnavailable,
                "The snapshot \(url.path) cannot be written; what was there before is untouched.", underlying: error)
        }
    }

    // MARK: - Abandoned files

    /// Returns the prefix of the names of files that are to replace this one; its length does not depend on the name.
    private static func prefix(_ url: URL) -> String {
        let hash = Data(url.lastPathComponent.utf8).withUnsafeBytes { Checksum.xxh3($0) }
        let digits = String(hash, radix: 16)
        return ".larder-" + String(repeating: "0", count: 16 - digits.count) + digits + "-"
    }

    /// Locks a file that was just created; returns false if another process has deleted it as abandoned before.
    private static func isHeld(_ descriptor: CInt) -> Bool {
        while flock(descriptor, LOCK_EX) != 0 {
            // On a disk without locks no process can take it for abandoned either.
            if errno != EINTR { return true }
        }
        var status = stat()
        return fstat(descriptor, &status) != 0 || status.st_nlink > 0
    }

    /// Deletes the files of processes that died before their ``commit()``.
    private static func deleteAbandoned(_ prefix: String, in folder: URL) {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        } catch {
            // If that matters, creating a file in the folder reports it.
            return
        }
        for name in names where name.hasPrefix(prefix) {
            let path = folder.appendingPathComponent(name).path
            let descriptor = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            guard descriptor >= 0 else { continue }
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { unlink(path) }
            close(descriptor)
        }
    }

    private static func failure(_ code: CInt, _ url: URL) -> CacheError {
        CacheError(
            code == ENOSPC || code == EDQUOT ? .storageFull : .storageUnavailable,
            "The snapshot \(url.path) cannot be written (\(String(cString: strerror(code)))); what was there before is "
                + "untouched. Check that its folder exists and its permissions.")
    }
}
