internal import Foundation
internal import LarderStore

// Safety: The bytes of the executable are those of a `Data` that lives as long as the closure that reads them.

/// A text that distinguishes one build of the program from another.
package enum BuildStamp {
    /// The stamp of the running program, which doesn't change while it runs.
    static let current = bundleStamp ?? executableStamp ?? unidentified

    /// “1.2 (345)”, for programs in a bundle.
    private static var bundleStamp: String? {
        stamp(
            version: Bundle.main.object(forInfoDictionaryKey: "CFBundleShortVersionString") as? String,
            build: Bundle.main.object(forInfoDictionaryKey: "CFBundleVersion") as? String)
    }

    package static func stamp(version: String?, build: String?) -> String? {
        switch (version, build) {
        case (let version?, let build?): "\(version) (\(build))"
        case (let version?, nil): version
        case (nil, let build?): "(\(build))"
        case (nil, nil): nil
        }
    }

    private static var executableStamp: String? {
        #if os(Linux)
        // The running file, even if another one is at its path by now.
        let path = "/proc/self/exe"
        #else
        guard let path = Bundle.main.executablePath else { return nil }
        #endif
        do {
            return try stamp(executable: path)
        } catch {
            return nil
        }
    }

    /// Returns the identifier that the linker has written into the executable, else a digest of the whole file.
    package static func stamp(executable path: String) throws -> String {
        // Xcode can leave the executable of a debug build as it is, and keep the code in a library next to it.
        let stamp = try stamp(file: path)
        do { return "\(stamp) \(try self.stamp(file: path + ".debug.dylib"))" } catch { return stamp }
    }

    private static func stamp(file path: String) throws -> String {
        // Mapped: an identifier stands soon after the file's header, and no more is read then.
        let file = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
        return file.withUnsafeBytes { bytes in
            let head = UnsafeRawBufferPointer(rebasing: bytes.prefix(1 << 20))
            if let id = ELFFile(bytes: head)?.buildID { return "build-id:" + id }
            if let id = MachOFile(bytes: head)?.identifier { return "uuid:" + id }
            return digest(bytes)
        }
    }

    /// Returns a checksum of 64 bits and the length.
    private static func digest(_ bytes: UnsafeRawBufferPointer) -> String {
        "digest:\(Checksum.of(bytes).digits)-\(bytes.count)"
    }

    /// The stamp if the program cannot be read: constant, so that at least no start purges a cache.
    private static let unidentified = "unidentified build"
}

/// The beginning of a 64-bit ELF file, as far as it identifies the build.
///
/// Safety: The buffer is the caller's and must be valid while this value is in use; `BuildStamp` uses it inside one
/// call. Every offset from the file is compared with the number of bytes before it is read.
package struct ELFFile {
    private let bytes: UnsafeRawBufferPointer

    /// Returns nil if `bytes` do not begin like such a file.
    package init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 64, bytes.prefix(5).elementsEqual([0x7F, 0x45, 0x4C, 0x46, 2]) else { return nil }
        self.bytes = bytes
    }

    /// The GNU build id, in hex digits; nil if the linker wrote none, or not into these bytes.
    package var buildID: String? {
        let table = clamped(word(32, UInt64.self))
        let size = Int(word(54, UInt16.self))
        for index in 0..<Int(word(56, UInt16.self)) {
            let header = table + index * size
            guard header + 56 <= bytes.count else { return nil }
            let isNote = word(header, UInt32.self) == 4
            let start = clamped(word(header + 8, UInt64.self))
            let end = min(start + clamped(word(header + 32, UInt64.self)), bytes.count)
            if isNote, let id = buildID(start, end) { return id }
        }
        return nil
    }

    /// Looks for the note named “GNU” of type 3 between `start` and `end`.
    ///
    /// A note is three words (length of the name, length of the content, type), the name and the content, each filled
    /// up to four bytes.
    private func buildID(_ start: Int, _ end: Int) -> String? {
        var note = start
        while note + 12 <= end {
            let nameCount = Int(word(note, UInt32.self))
            let count = Int(word(note + 4, UInt32.self))
            let name = note + 12
            let content = name + (nameCount + 3) & ~3
            guard content + count <= end else { return nil }
            if word(note + 8, UInt32.self) == 3, nameCount == 4, count > 0,
                bytes[name..<name + 4].elementsEqual("GNU\0".utf8)
            {
                return bytes[content..<content + count].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            }
            note = content + (count + 3) & ~3
        }
        return nil
    }

    private func word<T: FixedWidthInteger>(_ offset: Int, _: T.Type) -> T {
        T(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: T.self))
    }

    /// Returns a place in the file; one beyond the given bytes becomes their end.
    private func clamped(_ offset: UInt64) -> Int {
        Int(min(offset, UInt64(bytes.count)))
    }
}

/// The beginning of a 64-bit Mach-O file, or of one with several of them, as far as it identifies the build.
///
/// Safety: The buffer is the caller's and must be valid while this value is in use; `BuildStamp` uses it inside one
/// call. Every offset from the file is compared with the number of bytes before it is read.
struct MachOFile {
    private let bytes: UnsafeRawBufferPointer
    /// Where the file for one processor begins.
    private let start: Int

    /// Returns nil if `bytes` do not begin like such a file.
    init?(bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        guard bytes.count >= 32 else { return nil }
        // 0xCAFEBABE, in the order of the network: a list of files, of which the first one counts.
        let isList = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt32.self)) == 0xCAFE_BABE
        start = isList ? Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self))) : 0
        guard start + 32 <= bytes.count, word(start) == 0xFEED_FACF else { return nil }
    }

    /// The identifier that the linker has written, in hex digits; nil if it wrote none, or not into these bytes.
    var identifier: String? {
        var command = start + 32
        for _ in 0..<word(start + 16) {
            guard command + 8 <= bytes.count, case let size = Int(word(command + 4)), size >= 8 else { return nil }
            // LC_UUID.
            if word(command) == 0x1B, size >= 24, command + 24 <= bytes.count {
                return bytes[command + 8..<command + 24].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            }
            command += size
        }
        return nil
    }

    private func word(_ offset: Int) -> UInt32 {
        UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}
