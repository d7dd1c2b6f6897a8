#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

extension FileSystem {
    /// An open file, closed at the end of its life.
    ///
    /// Safety: The buffers are the caller's for the time of a call. The system is never told more bytes than a buffer
    /// has.
    package struct OpenFile: ~Copyable, Sendable {
        package enum Access: Sendable {
            case reading, overwriting

            var flags: Int32 {
                switch self {
                case .reading: O_RDONLY
                case .overwriting: O_WRONLY
                }
            }
        }

        private let descriptor: Int32
        private let folder: Folder
        private let name: String

        init(descriptor: Int32, folder: Folder, name: String) {
            self.descriptor = descriptor
            self.folder = folder
            self.name = name
        }

        deinit { close(descriptor) }

        private var path: String { folder.path + "/" + name }

        /// The most that one call is asked for: Darwin refuses 2 GiB, Linux stops short of them.
        private static let largestStep = 1 << 30

        package func status() throws(SystemError) -> FileStatus {
            var status = stat()
            if fstat(descriptor, &status) == 0 { return FileStatus(status) }
            throw failure("fstat", path)
        }

        /// Writes all of `bytes` where the last write ended.
        package func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
            guard let start = bytes.baseAddress else { return }
            var done = 0
            while done < bytes.count {
                let count = systemWrite(descriptor, start + done, min(bytes.count - done, Self.largestStep))
                if count >= 0 { done += count } else if errno != EINTR { throw failure("write", path) }
            }
        }

        /// Fills `bytes` from where the last read ended; fewer than asked for at the end of the file.
        package func read(into bytes: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
            guard let start = bytes.baseAddress else { return 0 }
            var done = 0
            while done < bytes.count {
                let count = systemRead(descriptor, start + done, min(bytes.count - done, Self.largestStep))
                if count == 0 { break }
                if count > 0 { done += count } else if errno != EINTR { throw failure("read", path) }
            }
            return done
        }

        /// Cuts the file off behind `size` bytes.
        package func truncate(to size: Int) throws(SystemError) {
            if retried({ ftruncate(descriptor, off_t(size)) }) != 0 { throw failure("ftruncate", path) }
        }

        /// Takes the right to write from the file, its owner's too.
        package func makeReadOnly() throws(SystemError) {
            if fchmod(descriptor, 0o400) != 0 { throw failure("fchmod", path) }
        }

        /// Makes sure that the bytes are on the disk.
        package func sync() throws(SystemError) {
            try FileSystem.sync(descriptor, path)
        }
    }
}

// Under other names, since the methods of the file have these.
private let systemRead = read
private let systemWrite = write
