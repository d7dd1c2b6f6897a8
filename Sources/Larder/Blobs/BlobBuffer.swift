internal import Foundation

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Memory of our own, not zeroed, that a file is read into and that becomes a `Data` without another copy.
///
/// Safety: The memory belongs to this value, which is move-only: it is released in `deinit`, or handed to a `Data`
/// that releases it. Only the bytes that a file filled are read.
struct BlobBuffer: ~Copyable {
    private let start: UnsafeMutableRawPointer
    private let count: Int

    /// From here on memory comes from the system and goes back to it.
    ///
    /// The C library may keep what it is given back, that of glibc up to 64 MB. Below, pages that are used again are worth
    /// more.
    private static let mappedLimit = 4 << 20

    /// Nil if there is not so much memory.
    init?(count: Int) {
        let found =
            count < Self.mappedLimit
            ? malloc(max(count, 1)) : mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0)
        guard let found, found != MAP_FAILED else { return nil }
        start = found
        self.count = count
        #if os(Linux)
        // A fault for every 2 MB and not for every 4 KB: reading 8 MB takes a tenth of the time. Advice may be refused.
        if count >= Self.mappedLimit { madvise(start, count, MADV_HUGEPAGE) }
        #endif
    }

    deinit { Self.release(start, count) }

    private static func release(_ start: UnsafeMutableRawPointer, _ count: Int) {
        if count < mappedLimit { free(start) } else { munmap(start, count) }
    }

    var bytes: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: start, count: count) }

    /// The bytes, which now belong to the `Data`.
    consuming func data() -> Data {
        let (start, count) = (start, count)
        discard self
        return Data(bytesNoCopy: start, count: count, deallocator: .custom { Self.release($0, $1) })
    }
}
