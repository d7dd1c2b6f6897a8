import Foundation
import LarderSQLite
import LarderTestSupport
import Testing

/// Records that are read from the pages, against the rows that SQLite gives.
struct RecordReaderTests {
    private let database: DatabaseFile

    init() throws { database = try DatabaseFile() }

    /// Runs `sql` on a connection of its own; closing it leaves the log as it is.
    private func execute(_ sql: String) throws {
        var connection = try database.open(.writer)
        try connection.execute(sql)
    }

    private func copyLog() throws {
        var writer = try database.open(.writer)
        var guardian = try database.open(.guardian)
        _ = try writer.userVersion()
        let result = try writer.checkpoint(guardedBy: &guardian)
        #expect(result?.isComplete == true)
    }

    private func records(_ source: RecordReader.Source = .tables, columns: Int) throws -> [RawRecord] {
        try database.records(source).filter { $0.values.count == columns }
    }

    @Test func `values of every type and width are read as they were written`() throws {
        let numbers: [Int64] = [
            0, 1, -1, 2, 127, -128, 128, 32_767, -32_768, 32_768, 8_388_607, -8_388_608, 8_388_608, 2_147_483_647,
            -2_147_483_648, 2_147_483_648, 140_737_488_355_327, -140_737_488_355_328, 140_737_488_355_328, .max, .min,
        ]
        var values: [RawValue] = numbers.map { .integer($0) }
        values += [
            .null, .real(0.1), .real(-.infinity), .text([]), .text(Array("héllo\0".utf8)), .blob([]), .blob([0, 255]),
        ]
        for size in [1, 488, 489, 490, 4000, 4057, 4058, 4059, 4100, 9000, 40_000] {
            values.append(.blob((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }))
        }
        try execute("CREATE TABLE v (number INTEGER PRIMARY KEY, x, y, z)")
        var connection = try database.open(.writer)
        for (number, value) in values.enumerated() {
            try connection.run(.insertValue) { (statement) throws(SQLiteError) in
                try statement.bind(Int64(number), at: 1)
                try statement.bind(value, at: 2)
            }
        }
        for isCopied in [false, true] {
            if isCopied { try copyLog() }
            let found = try records(columns: 4)
            #expect(found.map(\.rowID) == (0..<Int64(values.count)).map { $0 })
            for (record, value) in zip(found, values) { #expect(record.values == [.null, value, .null, .integer(7)]) }
        }
    }

    @Test func `rows of a deep tree are all there, and deleted rows and pages stay deleted`() throws {
        try execute(
            """
            CREATE TABLE v (number INTEGER PRIMARY KEY, x, y, z);
            CREATE INDEX v_x ON v (x, y);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
                INSERT INTO v SELECT i, 'row ' || i, i * i, zeroblob(i % 100) FROM n;
            """)
        try copyLog()
        #expect(Set(try records(columns: 4).compactMap(\.rowID)) == Set(1...50_000))
        #expect(try records(.indexes, columns: 3).count == 50_000)
        try execute("DELETE FROM v WHERE number % 3 = 0 OR number BETWEEN 10000 AND 30000")
        for isCopied in [false, true] {
            if isCopied { try copyLog() }
            let left = (1...50_000 as ClosedRange<Int64>).filter { $0 % 3 != 0 && !(10_000...30_000).contains($0) }
            #expect(try records(columns: 4).compactMap(\.rowID).sorted() == left)
            #expect(try records(.indexes, columns: 3).count == left.count)
        }
        try execute("PRAGMA incremental_vacuum")
        var connection = try database.open(.reader)
        let count = try connection.text("SELECT count(*) FROM v")
        #expect(try "\(records(columns: 4).count)" == count)
    }

    @Test func `an uncommitted end of the log does not count`() throws {
        try execute("CREATE TABLE v (number INTEGER PRIMARY KEY, x, y, z); INSERT INTO v VALUES (1, 2, 3, 4)")
        var connection = try database.open(.writer)
        // So small a cache that the pages of an open transaction go to the log.
        try connection.execute(
            """
            PRAGMA cache_size = 5; BEGIN IMMEDIATE;
            WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                INSERT INTO v SELECT i, 'row', i, zeroblob(500) FROM n;
            """)
        #expect(try database.logURL.fileSize() > 40 * 4096)
        #expect(try records(columns: 4).map(\.rowID) == [1])
        try connection.execute("COMMIT")
        #expect(try records(columns: 4).count == 500)
    }

    @Test func `an overwritten page costs the records on it and no others`() throws {
        try execute(
            """
            CREATE TABLE v (number INTEGER PRIMARY KEY, x, y, z);
            CREATE INDEX v_x ON v (x, y);
            CREATE TABLE w (a, b);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
                INSERT INTO v SELECT i, 'row ' || i, i * i, zeroblob(100) FROM n;
            INSERT INTO w SELECT number, zeroblob(iif(number % 50 = 0, 10000, 10)) FROM v WHERE number < 1000;
            DELETE FROM v WHERE number BETWEEN 3000 AND 4000;
            DELETE FROM w WHERE a > 500;
            """)
        try copyLog()
        try database.url.removeLog()
        let whole = try Data(contentsOf: database.url)
        let clean = Set(try records(columns: 4).map(Row.init))
        let small = Set(try records(columns: 2).map(Row.init).filter(\.isOnOnePage))
        #expect(clean.count == 4999)
        var random = Seeded()
        let step = 25
        for page in stride(from: Int.random(in: 1...step, using: &random), through: whole.count / 4096, by: step) {
            for kind in 0..<3 {
                var bytes = whole
                let range = (page - 1) * 4096..<page * 4096
                switch kind {
                case 0: bytes.replaceSubrange(range, with: Data(repeating: 0x5A, count: 4096))
                case 1: bytes.replaceSubrange(range, with: Data(count: 4096))
                default: for place in range { bytes[place] = UInt8.random(in: 0...255, using: &random) }
                }
                try bytes.write(to: database.url)
                let found = Set(try database.records(.tables).map(Row.init))
                let (lost, extra) = (clean.union(small).subtracting(found), found.subtracting(clean.union(small)))
                #expect(lost.allSatisfy { $0.page == page }, "seed \(random.seed), page \(page), kind \(kind)")
                #expect(
                    extra.allSatisfy { $0.page == page || !$0.isOnOnePage || $0.isOfSchema },
                    "seed \(random.seed), page \(page), kind \(kind)")
            }
        }
    }

    @Test func `whatever bytes are wrong, the reader comes to an end`() throws {
        try execute(
            """
            CREATE TABLE v (number INTEGER PRIMARY KEY, x, y, z);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                INSERT INTO v SELECT i, 'row ' || i, i * i, zeroblob(i * 40) FROM n;
            DELETE FROM v WHERE number % 4 = 0;
            """)
        try copyLog()
        try database.url.removeLog()
        let whole = try Data(contentsOf: database.url)
        var random = Seeded()
        for _ in 0..<60 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...400, using: &random) {
                // Mostly in the heads of pages, where the places and lengths are.
                let page = Int.random(in: 0..<whole.count / 4096, using: &random) * 4096
                let place =
                    Bool.random(using: &random)
                    ? Int.random(in: 0..<16, using: &random) : Int.random(in: 0..<4096, using: &random)
                bytes[page + place] = UInt8.random(in: 0...255, using: &random)
            }
            try bytes.write(to: database.url)
            #expect(try database.records(.tables).count <= 20_000, "seed \(random.seed)")
            #expect(try database.records(.indexes).count <= 20_000, "seed \(random.seed)")
        }
    }
}

/// A record of the test, to be looked up.
private struct Row: Hashable {
    let page: UInt32
    let rowID: Int64?
    let text: String
    let isOnOnePage: Bool
    let isOfSchema: Bool

    init(_ record: RawRecord) {
        page = record.page
        rowID = record.rowID
        text = String(describing: record.values)
        isOnOnePage = text.utf8.count < 8000
        isOfSchema = record.page == 1
    }
}

extension DatabaseFile {
    /// All records, read from the pages of the main file and the log.
    func records(_ source: RecordReader.Source) throws(SQLiteError) -> [RawRecord] {
        guard let main = try RawFile(path: path) else { return [] }
        var contents = LogContents()
        if let log = try LogFile(path: path + "-wal") {
            var scan = LogScan(log)
            contents = try scan.look(main: main).contents
        }
        let log = try LogFile(path: path + "-wal")
        var reader = try RecordReader(DatabasePages(main: main, log: log, contents: contents))
        var records: [RawRecord] = []
        try reader.forEach(source) { (record) throws(SQLiteError) in records.append(record) }
        return records
    }
}

extension SQL {
    fileprivate static let insertValue = SQL("INSERT INTO v VALUES (?1, ?2, NULL, 7)")
}
