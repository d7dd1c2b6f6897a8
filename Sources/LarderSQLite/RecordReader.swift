/// Reads all records of a database, page by page, whatever else is damaged.
package struct RecordReader: ~Copyable {
    private let pages: DatabasePages
    private let use: PageUse
    private var bytes = [UInt8](repeating: 0, count: Connection.pageSize)
    private var overflow = [UInt8](repeating: 0, count: Connection.pageSize)

    /// Which records to read.
    package enum Source: Sendable {
        case tables, indexes
    }

    package init(_ pages: consuming DatabasePages) throws(SQLiteError) {
        use = try PageUse(pages)
        self.pages = pages
    }

    /// Gives every record of every table, or of every index, to `body`, in the order of the pages.
    ///
    /// Bytes that are no record are left out.
    ///
    /// - Parameter columns: How many columns a record must have; nil for any.
    package mutating func forEach(
        _ source: Source, columns: Int? = nil, _ body: (RawRecord) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        guard pages.count >= 1 else { return }
        for number in 1...pages.count {
            let doubtful = pages.doubtful(number)
            guard use.isLive(number) || !doubtful.isEmpty else { continue }
            try pages.read(number, into: &bytes)
            try read(number, source, columns, body)
            for frame in doubtful {
                try pages.read(doubtful: frame, into: &bytes)
                try read(number, source, columns, body)
            }
        }
    }

    private mutating func read(
        _ number: UInt32, _ source: Source, _ columns: Int?, _ body: (RawRecord) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        guard let page = TreePage(bytes, isFirst: number == 1) else { return }
        switch (page.kind, source) {
        case (.tableLeaf, .tables), (.indexLeaf, .indexes), (.indexInterior, .indexes): break
        default: return
        }
        for cell in page.cells(in: bytes) {
            if let record = try record(at: cell, page.kind, number, columns) { try body(record) }
        }
    }

    private mutating func record(
        at cell: Int, _ kind: TreePage.Kind, _ number: UInt32, _ columns: Int?
    ) throws(SQLiteError) -> RawRecord? {
        guard let (size, afterSize) = bytes.varint(at: kind == .indexInterior ? cell + 4 : cell) else { return nil }
        var start = afterSize
        var rowID: Int64?
        if kind == .tableLeaf {
            guard let (row, end) = bytes.varint(at: start) else { return nil }
            (rowID, start) = (row, end)
        }
        if let columns, !RawRecord.mayHave(columns, bytes, at: start, size) { return nil }
        guard let payload = try payload(size, at: start, isTable: kind == .tableLeaf) else { return nil }
        return RawRecord.values(payload).map { RawRecord(page: number, rowID: rowID, values: $0) }
    }

    /// The most that SQLite stores in one record.
    private static let largestPayload: Int64 = 1_000_000_000

    /// The bytes of a record, of which the first are on its page and the rest in a chain of others.
    private mutating func payload(_ size: Int64, at start: Int, isTable: Bool) throws(SQLiteError) -> [UInt8]? {
        let usable = Connection.pageSize
        guard size > 0, size <= Self.largestPayload, size / Int64(usable) <= Int64(pages.count) else { return nil }
        let size = Int(size)
        let most = isTable ? usable - 35 : (usable - 12) * 64 / 255 - 23
        let least = (usable - 12) * 32 / 255 - 23
        let surplus = least + (size - least) % (usable - 4)
        let local = size <= most ? size : surplus <= most ? surplus : least
        guard start + local + (local < size ? 4 : 0) <= bytes.count else { return nil }
        var payload = Array(bytes[start..<start + local])
        guard local < size else { return payload }
        var next = bytes.word(start + local)
        // A chain that comes back to a page is found by a second place in it, which follows at powers of two.
        var (slow, steps, limit) = (UInt32(0), 0, 1)
        while payload.count < size {
            guard next > 1, next <= pages.count, next != slow else { return nil }
            steps += 1
            if steps == limit { (slow, steps, limit) = (next, 0, limit * 2) }
            try pages.read(next, into: &overflow)
            let count = min(size - payload.count, usable - 4)
            payload += overflow[4..<4 + count]
            next = overflow.word(0)
        }
        return payload
    }
}
