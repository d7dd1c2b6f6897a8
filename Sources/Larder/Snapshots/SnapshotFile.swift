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
/// It is written under a name of its own beside the old one; whoever dies before ``commit()`` leaves the old untouched.
final class SnapshotFile {
    private let url: URL
    private let temporary: URL
    private var handle: FileHandle?
    private var buffer = Data()

    init(replacing url: URL) throws(CacheError) {
        self.url = url
        temporary = url.deletingLastPathComponent()
            .appendingPathComponent(".\(url.lastPathComponent).\(UUID().uuidString)")
        let descriptor = open(temporary.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure(errno, url) }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
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
        try wrapping { handle in
            try handle.synchronize()
            try handle.close()
        }
        guard rename(temporary.path, url.path) == 0 else { throw Self.failure(errno, url) }
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

    private static func failure(_ code: CInt, _ url: URL) -> CacheError {
        CacheError(
            code == ENOSPC || code == EDQUOT ? .storageFull : .storageUnavailable,
            "The snapshot \(url.path) cannot be written (\(String(cString: strerror(code)))); what was there before is "
                + "untouched. Check that its folder exists and its permissions.")
    }
}
