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
