/// The files of a database that no other connection of any process has open, as long as this value lives.
package struct FilesAlone: ~Copyable {
    package let main: RawFile
    package var scan: LogScan

    /// - Returns: Nil if another connection has the database open, or one of the files is missing.
    package init?(
        main path: String, log: String, vfs: String?, isSound: @escaping LogScan.Judge = { _ in false }
    ) throws(SQLiteError) {
        guard let main = try RawFile(path: path, vfs: vfs, isWritable: true), try main.lockAlone() else { return nil }
        guard let log = try LogFile(path: log, vfs: vfs, isWritable: true) else { return nil }
        self.main = main
        scan = LogScan(log, isSound: isSound)
    }

    /// Looks through the log.
    package mutating func look() throws(SQLiteError) -> LogFinding { try scan.look(main: main) }
}

/// Looks through a log once, in constant memory apart from the table of pages.
package struct LogScan: ~Copyable {
    let log: LogFile
    var bytes = [UInt8](repeating: 0, count: LogFile.frameSize)
    var page = [UInt8](repeating: 0, count: Connection.pageSize)

    var contents = LogContents()
    var corrections: [LogCorrection] = []

    /// The frames of the transaction that is being read.
    private var pending: [UInt32: Int] = [:]

    /// The number of frames up to the last commit that is whole.
    var committed = 0

    /// The checksum there, from which the next frame goes on; nil where the header is lost.
    var committedSum: LogChecksum?

    /// Tells whether a record is as it was written.
    package typealias Judge = @Sendable (RawRecord) -> Bool

    private let isSound: Judge

    /// - Parameter isSound: Tells of a record of a table that it is as it was written, which decides between several bytes
    ///   that may be the damaged one.
    package init(_ log: consuming LogFile, isSound: @escaping Judge = { _ in false }) {
        self.log = log
        self.isSound = isSound
    }

    /// Looks through the log, and where it is damaged compares it with the main file.
    package mutating func look(main: borrowing RawFile) throws(SQLiteError) -> LogFinding {
        guard log.frameCount > 0 else { return .sound(contents) }
        let head = try log.readHeader()
        try log.read(frame: 0, into: &bytes)
        guard let (header, corrected) = LogHeader.read(head, firstFrame: bytes) else {
            guard head.contains(where: { $0 != 0 }) else { return .sound(contents) }
            return try lookWithoutHeader(main)
        }
        corrections = corrected
        try readCommitted(header, main)
        let tail = try readTail(header.salts, header.order)
        return try compare(tail, main, header.order)
    }

    /// Puts right the words that a look has found wrong, and waits for the disk.
    package func apply(_ corrections: [LogCorrection]) throws(SQLiteError) { try log.apply(corrections) }

    /// Overwrites the log with zeros: see ``LogFile/clear()``.
    package func clear() throws(SQLiteError) { try log.clear() }

    // MARK: What SQLite believes

    private mutating func readCommitted(_ header: LogHeader, _ main: borrowing RawFile) throws(SQLiteError) {
        var sum = header.checksum
        committedSum = sum
        var pendingCorrections: [LogCorrection] = []
        var pendingDoubtful: [LogContents.Doubtful] = []
        for index in 0..<log.frameCount {
            try log.read(frame: index, into: &bytes)
            guard let next = try following(sum, index, header, main) else { break }
            sum = next.sum
            let number = bytes.word(0)
            switch next.state {
            case .whole: pending[number] = index
            case .corrected(let correction):
                pending[number] = index
                pendingCorrections.append(correction)
            case .doubtful: pendingDoubtful.append(LogContents.Doubtful(page: number, frame: index))
            }
            guard bytes.word(4) > 0 else { continue }
            contents.frames.merge(pending) { $1 }
            contents.doubtful += pendingDoubtful
            contents.pageCount = bytes.word(4)
            corrections += pendingCorrections
            (committed, committedSum) = (index + 1, sum)
            pending = [:]
            (pendingCorrections, pendingDoubtful) = ([], [])
        }
    }

    /// What a frame of the chain is.
    private enum FrameState {
        case whole
        /// One byte was wrong.
        case corrected(LogCorrection)
        /// One byte is wrong, and nothing tells which.
        case doubtful
    }

    /// The sum after the frame in `bytes`, which is put right there where one word is wrong; nil where it does not fit.
    private mutating func following(
        _ sum: LogChecksum, _ index: Int, _ header: LogHeader, _ main: borrowing RawFile
    ) throws(SQLiteError) -> (sum: LogChecksum, state: FrameState)? {
        let stored = bytes.storedSum
        let computed = bytes.sum(after: sum, header.order)
        let salts = LogSalts(bytes, at: 8)
        let start = LogFile.offset(of: index)
        if computed == stored {
            if salts == header.salts { return bytes.word(0) > 0 ? (stored, .whole) : nil }
            guard salts.isHalf(header.salts) else { return nil }
            bytes = bytes.replacing(8, header.salts.first).replacing(12, header.salts.second)
            return (stored, .corrected(LogCorrection(offset: start + 8, bytes: Array(bytes[8..<16]))))
        }
        guard salts == header.salts else { return nil }
        // Either its checksum is wrong or a word of what it covers is; the next frame goes on from the right checksum.
        let candidates = bytes.correctedFrames(computed, header.order)
        let isNextAfterComputed = try isFrame(index + 1, after: computed, header)
        let isHalf = (computed.first == stored.first) != (computed.second == stored.second)
        let isNextAfterStored = try isFrame(index + 1, after: stored, header)
        let mayBeChecksum = isHalf && !isNextAfterStored
        var corrected: CorrectedFrame?
        if !isNextAfterComputed {
            corrected = candidates.count == 1 && !mayBeChecksum ? candidates[0] : try likeliest(candidates, main)
        }
        if let corrected {
            bytes = corrected.frame
            let right = Array(bytes[corrected.offset..<corrected.offset + 4])
            return (stored, .corrected(LogCorrection(offset: start + Int64(corrected.offset), bytes: right)))
        }
        if isNextAfterComputed || mayBeChecksum {
            bytes = bytes.replacing(16, computed.first).replacing(20, computed.second)
            return (computed, .corrected(LogCorrection(offset: start + 16, bytes: Array(bytes[16..<24]))))
        }
        return candidates.isEmpty || bytes.word(0) == 0 ? nil : (stored, .doubtful)
    }

    /// The one among several corrections that the page as it was before speaks for; nil if it does not tell.
    private mutating func likeliest(
        _ candidates: [CorrectedFrame], _ main: borrowing RawFile
    ) throws(SQLiteError) -> CorrectedFrame? {
        let (number, commit) = (bytes.word(0), bytes.word(4))
        // A database has no page behind the number of its pages.
        if commit > 0, number > commit {
            return candidates.first { $0.offset < 8 && $0.frame.word(0) <= $0.frame.word(4) && $0.frame.word(0) > 0 }
        }
        try readOlder(number, main)
        if let renamed = candidates.first(where: { $0.offset == 0 }) {
            // Of two numbers that it may have, that of the page which it looks like.
            let likeness = number == 0 ? -1 : sameWords(bytes)
            try readOlder(renamed.frame.word(0), main)
            if renamed.frame.word(0) > 0, sameWords(bytes) > likeness { return renamed }
            try readOlder(number, main)
        }
        var likely: CorrectedFrame?
        for candidate in candidates {
            let place = candidate.offset - LogFile.frameHeaderSize
            // The counts of pages are those of a commit: no word of the page can tell of them.
            guard place >= 0 else { continue }
            if bytes.word(candidate.offset) == page.word(place) { continue }
            // A word that changed, and so may be the wrong one: only if it is the only one, and right as it was before.
            guard likely == nil, candidate.frame.word(candidate.offset) == page.word(place) else {
                return soundRow(among: candidates)
            }
            likely = candidate
        }
        return likely
    }

    /// The one among several corrections that makes the row sound which it is in.
    private func soundRow(among candidates: [CorrectedFrame]) -> CorrectedFrame? {
        var sound: CorrectedFrame?
        for candidate in candidates where candidate.offset >= LogFile.frameHeaderSize {
            let content = Array(candidate.frame[LogFile.frameHeaderSize...])
            let place = candidate.offset - LogFile.frameHeaderSize
            guard let record = RawRecord.onPage(content, number: bytes.word(0), around: place), isSound(record) else {
                continue
            }
            guard sound == nil else { return nil }
            sound = candidate
        }
        return sound
    }

    /// Fills `page` with the page `number` as it was before the transaction that is being read, or earlier in it.
    private mutating func readOlder(_ number: UInt32, _ main: borrowing RawFile) throws(SQLiteError) {
        if let frame = pending[number] ?? contents.frames[number] {
            try log.read(pageOf: frame, into: &page)
        } else {
            try main.read(into: &page, at: (Int64(max(number, 1)) - 1) * Int64(Connection.pageSize))
        }
    }

    /// How many words of `frame` are those of `page`, but for zeros.
    private func sameWords(_ frame: [UInt8]) -> Int {
        stride(from: 0, to: Connection.pageSize, by: 4).count { place in
            let word = page.word(place)
            return word != 0 && frame.word(LogFile.frameHeaderSize + place) == word
        }
    }

    /// Whether the frame `index` is there and goes on from `sum`.
    private func isFrame(_ index: Int, after sum: LogChecksum, _ header: LogHeader) throws(SQLiteError) -> Bool {
        guard index < log.frameCount else { return false }
        var next = [UInt8](repeating: 0, count: LogFile.frameSize)
        try log.read(frame: index, into: &next)
        return LogSalts(next, at: 8) == header.salts && next.sum(after: sum, header.order) == next.storedSum
    }
}

extension Array where Element == UInt8 {
    /// The checksum that a frame says it has.
    var storedSum: LogChecksum { LogChecksum(first: word(16), second: word(20)) }

    /// The checksum that a frame has.
    func sum(after sum: LogChecksum, _ order: LogChecksum.ByteOrder) -> LogChecksum {
        var sum = sum
        sum.add(self, 0..<8, order)
        sum.add(self, LogFile.frameHeaderSize..<LogFile.frameSize, order)
        return sum
    }

    /// The frames that this one may have been before one byte of it was damaged.
    fileprivate func correctedFrames(_ computed: LogChecksum, _ order: LogChecksum.ByteOrder) -> [CorrectedFrame] {
        let pageWords = Connection.pageSize / 4
        return computed.mistakes(before: storedSum, words: pageWords + 2).compactMap { mistake in
            let isInPage = mistake.wordsAfter < pageWords
            // The salts and the checksum stand between the words of the header and those of the page.
            let end = isInPage ? LogFile.frameSize : 8
            let wordsAfter = isInPage ? mistake.wordsAfter : mistake.wordsAfter - pageWords
            let inPart = LogChecksum.Mistake(wordsAfter: wordsAfter, missing: mistake.missing)
            let offset = end - 4 * (wordsAfter + 1)
            let frame = correcting(inPart, before: end, order)
            // More than one byte is not damage of a word: a longer run of one value adds up to a word in its middle, too.
            guard (0..<4).count(where: { frame[offset + $0] != self[offset + $0] }) == 1 else { return nil }
            return CorrectedFrame(frame: frame, offset: offset)
        }
    }
}

/// A frame with one word changed, and where that is.
private struct CorrectedFrame {
    let frame: [UInt8]
    let offset: Int
}
