import Foundation
import LarderSQLite
import LarderTestSupport
import Testing

/// Logs with damage, as a look at them finds it.
struct LogFindingTests {
    private let database: DatabaseFile
    private let main: Data
    private let log: Data
    private let rows: String
    private static let frame = 4120

    /// A database whose log has commits of several pages, none of them copied.
    init() throws {
        database = try DatabaseFile()
        var connection = try database.open(.writer)
        for commit in 1...12 {
            try connection.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
                    INSERT INTO t SELECT 'commit \(commit), row ' || i || hex(zeroblob(100)) FROM n
                """)
        }
        main = try Data(contentsOf: database.url)
        log = try Data(contentsOf: database.logURL)
        rows = try connection.allRows()
    }

    private var frameCount: Int { (log.count - 32) / Self.frame }

    /// The main file with everything of the log in it.
    private func copiedMain() throws -> Data {
        var writer = try database.open(.writer)
        var guardian = try database.open(.guardian)
        _ = try writer.userVersion()
        let result = try writer.checkpoint(guardedBy: &guardian)
        #expect(result?.isComplete == true)
        return try Data(contentsOf: database.url)
    }

    /// Writes both files, and looks at them; puts the log right where that can be done.
    private func look(_ main: Data, _ log: Data) throws -> LogFinding {
        for ending in ["", "-shm", "-wal"] { unlink(database.path + ending) }
        try main.write(to: database.url)
        try log.write(to: database.logURL)
        guard var files = try FilesAlone(main: database.path, log: database.logURL.path, vfs: nil) else {
            throw SQLiteError(code: .busy, message: "a connection is open")
        }
        let finding = try files.look()
        switch finding {
        case .correctable(let corrections, _): try files.scan.apply(corrections)
        case .copied: try files.scan.clear()
        case .sound, .mixed: break
        }
        return finding
    }

    private func rowsNow() throws -> String {
        var connection = try database.open(.writer)
        return try connection.allRows()
    }

    @Test func `a whole log is left alone, copied or not`() throws {
        let copied = try copiedMain()
        for main in [main, copied] {
            guard case .sound = try look(main, log) else {
                Issue.record("a sound log")
                return
            }
            #expect(try Data(contentsOf: database.logURL) == log)
            #expect(try rowsNow() == rows)
        }
    }

    @Test func `any flipped bit of a log is put right by its checksums`() throws {
        var random = Seeded()
        let copied = try copiedMain()
        // Every bit of the header and of some frames' headers, and some of the pages; of the last frame's page not the last
        // word, which may as well be the checksum's second half.
        var bits = Array(0..<32 * 8)
        for frame in [0, 7, frameCount - 1] {
            bits += (32 + frame * Self.frame) * 8..<(32 + frame * Self.frame + 24) * 8
        }
        for _ in 0..<60 { bits.append(Int.random(in: 256..<(log.count - 4) * 8, using: &random)) }
        var hardCount = 0
        for bit in bits {
            var damaged = log
            damaged[bit / 8] ^= 1 << (bit % 8)
            let finding = try look(Bool.random(using: &random) ? main : copied, damaged)
            switch finding {
            case .correctable, .copied: break
            case .mixed:
                // A high bit of a word that the page did not have before.
                hardCount += 1
                continue
            case .sound:
                Issue.record("seed \(random.seed), bit \(bit): \(finding)")
                continue
            }
            let isRight = Result { try rowsNow() == rows }
            #expect(throws: Never.self, "seed \(random.seed), bit \(bit): \(finding)") { try isRight.get() }
            if case .success(let isRight) = isRight {
                #expect(isRight, "seed \(random.seed), bit \(bit): \(finding)")
            }
        }
        print("of \(bits.count) bits \(hardCount) are left to a salvage")
        #expect(hardCount < bits.count / 3)
    }

    @Test func `a damaged page in a copied log drops the log`() throws {
        let copied = try copiedMain()
        var isSure = 0
        for frame in 0..<frameCount {
            var damaged = log
            let start = 32 + frame * Self.frame + 24 + 100
            damaged.replaceSubrange(start..<start + 200, with: Data(repeating: 0xA5, count: 200))
            let finding = try look(copied, damaged)
            guard case .copied = finding else {
                Issue.record("frame \(frame): \(finding)")
                continue
            }
            isSure += 1
            #expect(try rowsNow() == rows, "frame \(frame)")
            #expect(try Data(contentsOf: database.logURL).prefix(32).allSatisfy { $0 == 0 } || rowsNow() == rows)
        }
        #expect(isSure == frameCount)
    }

    @Test func `a damaged page in a log of which nothing was copied is left to SQLite`() throws {
        var damaged = log
        let start = 32 + (frameCount / 2) * Self.frame + 24 + 100
        damaged.replaceSubrange(start..<start + 200, with: Data(repeating: 0xA5, count: 200))
        guard case .sound = try look(main, damaged) else {
            Issue.record("nothing was copied")
            return
        }
        #expect(try rowsNow().hasPrefix("commit 1, row 1"))
        #expect(try rowsNow() != rows)
    }

    @Test func `a damaged page in a log of which a part was copied is salvaged from`() throws {
        let copied = try copiedMain()
        // The pages of the second half were copied, those of the first were not.
        var partly = main
        partly.append(copied[partly.count...])
        partly.replaceSubrange(partly.count / 2..<partly.count, with: copied[partly.count / 2..<partly.count])
        var damaged = log
        let start = 32 + 3 * Self.frame + 24 + 100
        damaged.replaceSubrange(start..<start + 200, with: Data(repeating: 0xA5, count: 200))
        guard case .mixed = try look(partly, damaged) else {
            Issue.record("a part was copied")
            return
        }
        let found = try database.records(.tables).compactMap { record -> String? in
            guard record.page > 1, case .text(let bytes)? = record.values.first else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
        let lost = Set(rows.split(separator: "\n").map(String.init)).subtracting(found)
        #expect(lost.count < 30)
        #expect(found.contains { $0.hasPrefix("commit 12, row 20") })
    }

    @Test func `a log whose header was overwritten is not dropped`() throws {
        var damaged = log
        damaged.replaceSubrange(0..<32, with: Data(repeating: 0xA5, count: 32))
        guard case .mixed = try look(main, damaged) else {
            Issue.record("its frames were not copied")
            return
        }
        let copied = try copiedMainAgain()
        guard case .copied = try look(copied, damaged) else {
            Issue.record("its frames were copied")
            return
        }
        #expect(try rowsNow() == rows)
    }

    private func copiedMainAgain() throws -> Data {
        _ = try look(main, log)
        return try copiedMain()
    }

    @Test func `while another connection is open nothing is looked at`() throws {
        var other = try database.open(.reader)
        _ = try other.userVersion()
        let files = try FilesAlone(main: database.path, log: database.logURL.path, vfs: nil)
        let isAlone = files != nil
        #expect(!isAlone)
    }

    @Test func `closing the last connection leaves a log of zeros, and another one needs it`() throws {
        _ = try copiedMain()
        var last = try database.open(.writer)
        var other = try database.open(.reader)
        _ = try (last.userVersion(), other.userVersion())
        let isEmptiedEarly = try last.emptyLog(keeping: 8192)
        #expect(!isEmptiedEarly)
        #expect(try Data(contentsOf: database.logURL) == log)
        // A connection that builds the index does not know what was copied.
        var guardian = try database.open(.guardian)
        _ = try last.checkpoint(guardedBy: &guardian)
        _ = consume guardian
        _ = consume other
        let isEmptied = try last.emptyLog(keeping: 8192)
        #expect(isEmptied)
        _ = consume last
        #expect(try Data(contentsOf: database.logURL) == Data(count: 8192))
        #expect(try rowsNow() == rows)
    }
}

extension Connection {
    fileprivate mutating func allRows() throws(SQLiteError) -> String {
        try texts("SELECT x FROM t ORDER BY rowid").joined(separator: "\n")
    }
}
