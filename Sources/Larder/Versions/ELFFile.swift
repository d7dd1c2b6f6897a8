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
