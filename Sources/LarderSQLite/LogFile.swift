/// The write-ahead log of a database, read without SQLite and by its documented format.
///
/// A header of 32 bytes is followed by frames: 24 bytes that name a page, and its 4,096 bytes. Header and frames carry two
/// random numbers, the salts, that change each time the log is started again, and the checksum runs on through all of
/// them. SQLite believes the frames up to the first whose salts or checksum do not fit.
package struct LogFile: ~Copyable {
    static let headerSize = 32
    static let frameHeaderSize = 24
    static let frameSize = frameHeaderSize + Connection.pageSize

    private let file: RawFile

    /// The number of frames that the length of the file has room for.
    let frameCount: Int

    /// Opens the log at `path`.
    ///
    /// - Returns: Nil if there is none.
    package init?(path: String, vfs: String? = nil, isWritable: Bool = false) throws(SQLiteError) {
        guard let file = try RawFile(path: path, vfs: vfs, isWritable: isWritable) else { return nil }
        frameCount = max(0, Int(clamping: file.size) - Self.headerSize) / Self.frameSize
        self.file = file
    }

    /// Whether the log at `path` begins with a header that is whole.
    package static func hasHeader(_ path: String, vfs: String? = nil) throws(SQLiteError) -> Bool {
        guard let log = try LogFile(path: path, vfs: vfs) else { return false }
        return LogHeader.exact(try log.readHeader()) != nil
    }

    /// Reads the header.
    func readHeader() throws(SQLiteError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.headerSize)
        try file.read(into: &bytes, at: 0)
        return bytes
    }

    /// The place in the file at which the frame `index` begins.
    static func offset(of index: Int) -> Int64 { Int64(headerSize) + Int64(index) * Int64(frameSize) }

    /// Fills `bytes` from `offset` on.
    func read(at offset: Int64, into bytes: inout [UInt8]) throws(SQLiteError) {
        try file.read(into: &bytes, at: offset)
    }

    /// Fills `bytes` with the frame `index`, its header first.
    func read(frame index: Int, into bytes: inout [UInt8]) throws(SQLiteError) {
        try file.read(into: &bytes, at: Self.offset(of: index))
    }

    /// Fills `bytes` with the page in the frame `index`.
    func read(pageOf index: Int, into bytes: inout [UInt8]) throws(SQLiteError) {
        try file.read(into: &bytes, at: Self.offset(of: index) + Int64(Self.frameHeaderSize))
    }

    /// Puts right the words that a look at the log has found wrong, and waits for the disk.
    func apply(_ corrections: [LogCorrection]) throws(SQLiteError) {
        for correction in corrections { try file.write(correction.bytes, at: correction.offset) }
        if !corrections.isEmpty { try file.sync() }
    }

    /// Overwrites the log with zeros, so that nothing in it is ever read again; its file keeps its length.
    ///
    /// All of it must be in the main file, and no connection may have the database open. The header goes first and is on
    /// the disk before the rest goes, since a log that has lost frames in its middle is worse than one that has them all.
    func clear() throws(SQLiteError) {
        try file.clear(size: file.size)
    }
}

extension RawFile {
    /// Overwrites the header of a log, waits for the disk, and then overwrites the rest.
    fileprivate func clear(size: Int64) throws(SQLiteError) {
        try write([UInt8](repeating: 0, count: LogFile.headerSize), at: 0)
        try sync()
        let zeros = [UInt8](repeating: 0, count: 1 << 16)
        var offset: Int64 = 0
        while offset < size {
            let count = min(Int64(zeros.count), size - offset)
            try write(count == zeros.count ? zeros : Array(zeros[..<Int(count)]), at: offset)
            offset += count
        }
    }
}

/// Bytes of a log that the checksums prove wrong, and the right ones.
package struct LogCorrection: Sendable, Equatable {
    package let offset: Int64
    package let bytes: [UInt8]
}

/// The header of a log.
struct LogHeader: Equatable {
    let order: LogChecksum.ByteOrder
    let salts: LogSalts
    let checksum: LogChecksum
}

/// The two random numbers that a log has from one start to the next.
struct LogSalts: Equatable {
    let first: UInt32
    let second: UInt32

    init(_ bytes: [UInt8], at offset: Int) {
        first = bytes.word(offset)
        second = bytes.word(offset + 4)
    }

    /// Whether one of the two is that of `other`.
    func isHalf(_ other: LogSalts) -> Bool { (first == other.first) != (second == other.second) }
}

extension LogHeader {
    private static let magics: [UInt32: LogChecksum.ByteOrder] = [0x377F_0682: .little, 0x377F_0683: .big]
    private static let version: UInt32 = 3_007_000
    private static let saltOffset = 16
    private static let checksumOffset = 24

    /// The header that `bytes` are; with one wrong word put right where `firstFrame` does not speak against it.
    ///
    /// - Parameter firstFrame: The bytes of the first frame, if there is one.
    static func read(_ bytes: [UInt8], firstFrame: [UInt8]?) -> (header: LogHeader, corrections: [LogCorrection])? {
        if let header = exact(bytes) { return (header, []) }
        guard bytes.contains(where: { $0 != 0 }) else { return nil }
        for order in [LogChecksum.ByteOrder.little, .big] {
            var sum = LogChecksum()
            sum.add(bytes, 0..<checksumOffset, order)
            // Of the checksum itself first: a wrong second half of it looks like a wrong last word before it.
            var candidates = [
                bytes.replacing(checksumOffset, sum.first), bytes.replacing(checksumOffset + 4, sum.second),
            ]
            let stored = LogChecksum(first: bytes.word(checksumOffset), second: bytes.word(checksumOffset + 4))
            candidates += sum.mistakes(before: stored, words: checksumOffset / 4)
                .map { bytes.correcting($0, before: checksumOffset, order) }
            for candidate in candidates {
                guard let header = exact(candidate) else { continue }
                if let firstFrame, header.salts != LogSalts(firstFrame, at: 8) { continue }
                return (header, [LogCorrection(offset: 0, bytes: candidate)])
            }
        }
        return nil
    }

    static func exact(_ bytes: [UInt8]) -> LogHeader? {
        guard let order = magics[bytes.word(0)], bytes.word(4) == version, bytes.word(8) == Connection.pageSize else {
            return nil
        }
        var sum = LogChecksum()
        sum.add(bytes, 0..<checksumOffset, order)
        guard sum == LogChecksum(first: bytes.word(checksumOffset), second: bytes.word(checksumOffset + 4)) else {
            return nil
        }
        return LogHeader(order: order, salts: LogSalts(bytes, at: saltOffset), checksum: sum)
    }
}

extension Array where Element == UInt8 {
    /// The same bytes with the number `word` at `offset`, most significant byte first.
    func replacing(_ offset: Int, _ word: UInt32) -> [UInt8] {
        var bytes = self
        bytes.replaceSubrange(offset..<offset + 4, with: Swift.withUnsafeBytes(of: word.bigEndian) { Array($0) })
        return bytes
    }

    /// The same bytes with one word put right, of those that end at `end`.
    func correcting(_ mistake: LogChecksum.Mistake, before end: Int, _ order: LogChecksum.ByteOrder) -> [UInt8] {
        var bytes = self
        let offset = end - 4 * (mistake.wordsAfter + 1)
        let word = withUnsafeBytes { order.word($0, offset) } &+ mistake.missing
        bytes.replaceSubrange(offset..<offset + 4, with: order.bytes(word))
        return bytes
    }
}
