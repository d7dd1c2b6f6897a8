/// What a scan finds after the last commit that SQLite reads, and whether the main file has it.
extension LogScan {
    // MARK: What is after it

    /// A frame of the same start of the log that SQLite would not read.
    struct TailFrame {
        let index: Int
        let page: UInt32
        let commit: UInt32
        /// Whether its checksum fits that of the frame before it.
        let isWhole: Bool
    }

    /// The frames behind the last commit that have these salts, up to the last commit among them.
    mutating func readTail(
        _ salts: LogSalts, _ order: LogChecksum.ByteOrder
    ) throws(SQLiteError) -> [TailFrame] {
        var tail: [TailFrame] = []
        var before = committedSum.map { (index: committed - 1, sum: $0) }
        var head = [UInt8](repeating: 0, count: LogFile.frameHeaderSize)
        for index in committed..<max(committed, log.frameCount) {
            try log.read(head: index, into: &head)
            guard LogSalts(head, at: 8) == salts, head.word(0) > 0 else { continue }
            try log.read(frame: index, into: &bytes)
            let isWhole = before.map { $0.index == index - 1 && bytes.sum(after: $0.sum, order) == bytes.storedSum }
            tail.append(
                TailFrame(
                    index: index, page: bytes.word(0), commit: bytes.word(4), isWhole: isWhole ?? (index == 0)))
            before = (index, bytes.storedSum)
        }
        if let last = tail.lastIndex(where: { $0.commit > 0 && $0.isWhole }) {
            tail.removeSubrange((last + 1)...)
        } else if tail.last?.isWhole != false {
            // Nothing of it was ever committed.
            tail = []
        }
        return tail
    }

    /// The log whose header is lost.
    ///
    /// A header is on the disk before the first frame behind it, so this is no loss of power.
    mutating func lookWithoutHeader(_ main: borrowing RawFile) throws(SQLiteError) -> LogFinding {
        try log.read(frame: 0, into: &bytes)
        let salts = LogSalts(bytes, at: 8)
        for order in [LogChecksum.ByteOrder.little, .big] {
            let tail = try readTail(salts, order)
            guard tail.contains(where: { $0.index > 0 && $0.isWhole }) || (tail.count == 1 && order == .big) else {
                continue
            }
            let finding = try compare(tail, main, order)
            if case .sound = finding { return mixed(with: tail) }
            return finding
        }
        return .sound(contents)
    }

    // MARK: What of it is in the main file

    /// So many frames, and all but one of them whole, are no loss of power.
    private static let longTail = 16

    mutating func compare(
        _ tail: [TailFrame], _ main: borrowing RawFile, _ order: LogChecksum.ByteOrder
    ) throws(SQLiteError) -> LogFinding {
        let sound = corrections.isEmpty ? LogFinding.sound(contents) : .correctable(corrections, contents)
        guard !tail.isEmpty || !contents.doubtful.isEmpty else { return sound }
        var last = contents.frames.mapValues { TailFrame(index: $0, page: 0, commit: 0, isWhole: true) }
        for frame in tail { last[frame.page] = frame }
        // Pages behind the damage that are in the main file, and those that are not.
        var (copied, missing) = (0, 0)
        var isPrefixCopied = true
        var isAllCopied = true
        var isInOrder = true
        for (number, frame) in last.sorted(by: { $0.key < $1.key }) {
            if try isCopied(number, frame, main, order) {
                if frame.index >= committed { copied += 1 }
                if missing > 0 { isInOrder = false }
                continue
            }
            // The number of a page that is doubtful may be another one.
            if frame.isWhole { isAllCopied = false }
            if frame.index < committed { isPrefixCopied = false } else { missing += 1 }
        }
        // A doubtful frame whose page is in the main file is not needed.
        if !contents.doubtful.isEmpty { return isAllCopied ? .copied : mixed(with: tail) }
        // A log is copied from its start on: a page before the damage that is not in the main file tells that nothing was. A few
        // pages are in it by chance after a loss of power: those that were changed and changed back.
        // A flipped bit is one bad frame, and a bad block two or three. A loss of power hits many of those that were not synced,
        // and copying goes by the numbers of pages.
        let bad = tail.count { !$0.isWhole }
        let isFlip = bad <= 1 && tail.count >= Self.longTail && isInOrder && copied > 1
        guard isPrefixCopied, copied > 0, bad <= 3, isFlip || copied >= missing else { return sound }
        if isAllCopied { return .copied }
        return tail.contains(where: { $0.commit > 0 }) ? mixed(with: tail) : sound
    }

    /// Whether the main file has the page `number` as the frame has it, or as its checksum says that it was.
    private mutating func isCopied(
        _ number: UInt32, _ frame: TailFrame, _ main: borrowing RawFile, _ order: LogChecksum.ByteOrder
    ) throws(SQLiteError) -> Bool {
        try main.read(into: &page, at: (Int64(number) - 1) * Int64(Connection.pageSize))
        try log.read(frame: frame.index, into: &bytes)
        if bytes[LogFile.frameHeaderSize...].elementsEqual(page) { return true }
        guard !frame.isWhole, frame.index > 0 else { return false }
        bytes.replaceSubrange(LogFile.frameHeaderSize..., with: page)
        let stored = bytes.storedSum
        let sum = { (frame: [UInt8], before: LogChecksum) in frame.sum(after: before, order) }
        let replaced = bytes
        try log.read(frame: frame.index - 1, into: &bytes)
        return sum(replaced, bytes.storedSum) == stored
    }

    private func mixed(with tail: [TailFrame]) -> LogFinding {
        var all = contents
        for frame in tail {
            if frame.isWhole {
                all.frames[frame.page] = frame.index
                if frame.commit > 0 { all.pageCount = frame.commit }
            } else {
                all.doubtful.append(LogContents.Doubtful(page: frame.page, frame: frame.index))
            }
        }
        return .mixed(all)
    }
}

extension LogFile {
    /// Fills `bytes` with the header of the frame `index`.
    fileprivate func read(head index: Int, into bytes: inout [UInt8]) throws(SQLiteError) {
        try read(at: Self.offset(of: index), into: &bytes)
    }
}
