import Foundation
import LarderSQLite
import LarderTestSupport
import Testing

struct FileHeadTests {
    @Test func `it tells mark, tables and size, and changes nothing`() throws {
        let file = try DatabaseFile()
        do {
            var writer = try file.open(.writer)
            var guardian = try file.open(.guardian)
            _ = try writer.checkpoint(guardedBy: &guardian)
        }
        let before = try file.folder.contents()
        let head = try FileHead(path: file.path)
        #expect(head.hasSQLiteHeader)
        #expect(head.applicationID == 42)
        #expect(!head.hasNoTables)
        #expect(head.size == 8192 || head.size == 12288)
        #expect(try file.folder.contents() == before)
    }

    @Test func `a database without tables is known as one`() throws {
        let folder = try DatabaseFile().folder
        let path = folder.real("empty.sqlite").path
        try Data().write(to: folder.real("empty.sqlite"))
        var connection = try Connection.open(.file(path), .init(role: .writer, busyMilliseconds: 0))
        _ = try connection.claimEmptyDatabase(applicationID: 0)
        #expect(try FileHead(path: path).hasNoTables)
        #expect(try FileHead(path: path).hasSQLiteHeader)
    }

    @Test(arguments: [0, 1, 15, 16, 99, 100, 108, 5000])
    func `text of any length is no database`(length: Int) throws {
        let folder = try DatabaseFile().folder
        let url = folder.real("text.sqlite")
        try Data(repeating: UInt8(ascii: "x"), count: length).write(to: url)
        let head = try FileHead(path: url.path)
        #expect(!head.hasSQLiteHeader)
        // SQLite takes one byte for none: it writes one itself on some systems.
        #expect(head.size == Int64(length == 1 ? 0 : length))
        #expect(head.applicationID != 42)
    }

    @Test func `reading it keeps the locks that the process has`() throws {
        let file = try DatabaseFile()
        var writer = try file.open(.writer)
        try writer.execute("BEGIN IMMEDIATE")
        _ = try FileHead(path: file.path)
        // If our locks were gone, another process could take the write lock now.
        let probe = Process()
        probe.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        probe.arguments = ["python3", "-c", Self.probe, file.path]
        let pipe = Pipe()
        probe.standardOutput = pipe
        try probe.run()
        let said = pipe.fileHandleForReading.readDataToEndOfFile()
        probe.waitUntilExit()
        #expect(String(decoding: said, as: UTF8.self) == "locked\n")
    }

    /// Tries the write lock of the log (byte 120 of its index) and a shared lock's range of the main file.
    private static let probe = """
        import fcntl, sys
        try:
            with open(sys.argv[1] + "-shm", "r+b") as index:
                fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 120)
            print("free")
        except OSError:
            print("locked")
        """
}
