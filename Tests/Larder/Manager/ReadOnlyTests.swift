import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

struct ReadOnlyTests {
    private let folder: TemporaryFolder
    private var url: URL { folder("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    private func open() throws(CacheError) -> CacheManager {
        var configuration = CacheManager.Configuration()
        configuration.access = .readOnly
        return try CacheManager(url: url, configuration: configuration)
    }

    @Test func `nothing on disk changes, and writes say why they cannot be`() throws {
        try CacheManager.makeStore(at: url, rows: 3)
        let before = try folder.contents()
        let manager = try open()
        #expect(try manager.store().rowCount() == 3)
        let error = #expect(throws: CacheError.self) { try manager.writableStore() }
        #expect(error?.code == .readOnly)
        try manager.close()
        #expect(try folder.contents() == before)
    }

    @Test(arguments: [["-wal", "-shm", ".lock"], ["-shm", ".lock"]])
    func `the main file alone is enough once the log is empty`(missing: [String]) throws {
        try CacheManager.makeStore(at: url, rows: 3)
        for ending in ["-wal", "-shm", ".lock"] where missing.contains(ending) {
            try FileManager.default.removeItem(at: folder("store.sqlite" + ending))
        }
        if !missing.contains("-wal") { try Data().write(to: folder("store.sqlite-wal")) }
        let before = try folder.contents()
        let manager = try open()
        #expect(try manager.store().rowCount() == 3)
        try manager.close()
        #expect(try folder.contents() == before)
    }

    @Test func `a log that nobody copied yet is read`() throws {
        try CacheManager.makeStore(at: url, rows: 1)
        var writer = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
        try writer.insertRow(named: "in the log")
        let manager = try open()
        #expect(try manager.store().rowCount() == 2)
        try writer.insertRow(named: "while open")
        #expect(try manager.store().rowCount() == 3)
    }

    @Test func `a reader with a log notices that another store stands in the place of its own`() throws {
        try CacheManager.makeStore(at: url, rows: 1)
        var writer: Connection? = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
        try writer!.insertRow(named: "in the log")
        let reader = try open()
        #expect(try reader.store().rowCount() == 2)
        // Made elsewhere: who opens a path for writing makes the readers of that path connect anew.
        let other = try TemporaryFolder()
        try CacheManager.makeStore(at: other("store.sqlite"), rows: 5)
        for name in try folder.names { try FileManager.default.removeItem(at: folder(name)) }
        for name in try other.names { try FileManager.default.moveItem(at: other(name), to: folder(name)) }
        writer = nil
        #expect(try reader.store().rowCount() == 5)
    }

    @Test func `a reader without a log notices that somebody begins to write`() throws {
        try CacheManager.makeStore(at: url, rows: 2)
        try url.removeLog()
        let reader = try open()
        #expect(try reader.store().rowCount() == 2)
        let writer = try CacheManager(url: url)
        try writer.store().insertRow(named: "new")
        #expect(try reader.store().rowCount() == 3)
        try writer.store().insertRow(named: "newer")
        #expect(try reader.store().rowCount() == 4)
    }

    @Test func `reader and writer of one process work side by side, whoever came first`() throws {
        try CacheManager.makeStore(at: url, rows: 1)
        do {
            let reader = try open()
            #expect(try reader.store().rowCount() == 1)
            let writer = try CacheManager(url: url)
            try writer.store().insertRow(named: "a")
            #expect(try reader.store().rowCount() == 2)
        }
        let writer = try CacheManager(url: url)
        let reader = try open()
        try writer.close()
        #expect(try reader.store().rowCount() == 2)
    }

    @Test func `a reader that never pauses is not in the way of a writer of the same process`() throws {
        try CacheManager.makeStore(at: url, rows: 1)
        let reader = try open()
        let errors = errors(ofThreads: 3) { thread in
            for round in 0..<100 {
                if thread > 0 {
                    for _ in 0..<20 { _ = try reader.store().rowCount() }
                } else {
                    let writer = try CacheManager(url: url, configuration: .patient)
                    try writer.writableStore().insertRow(named: "round \(round)")
                    try writer.close()
                }
            }
        }
        #expect(errors == [])
        #expect(try reader.store().rowCount() == 101)
    }

    @Test func `a reader without a log notices a writer that came and went`() throws {
        try CacheManager.makeStore(at: url, rows: 2)
        try url.removeLog()
        let reader = try open()
        #expect(try reader.store().rowCount() == 2)
        // As the shell does: it copies and deletes the log when it closes.
        do {
            var writer = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 0))
            var guardian = try Connection.open(.file(url.path), .init(role: .guardian, busyMilliseconds: 0))
            try writer.insertRow(named: "new")
            #expect(try writer.checkpoint(guardedBy: &guardian)?.isComplete == true)
        }
        try url.removeLog()
        #expect(try reader.store().rowCount() == 3)
    }

    @Test func `who only reads makes nothing anew when the last writer has gone`() throws {
        let writer = try CacheManager(url: url)
        try writer.store().insertRow(named: "a")
        let reader = try open()
        try writer.close()
        for name in try folder.names { try FileManager.default.removeItem(at: folder(name)) }
        try Data(repeating: 120, count: 5000).write(to: url)
        let before = try folder.contents()
        for _ in 0..<3 {
            // What it has read before may be given still, or the file's going is an error.
            do {
                _ = try reader.store().rowCount()
                _ = try reader.store().isIdle
            } catch {}
        }
        #expect(try folder.contents() == before)
    }

    @Test func `where there is nothing, nothing is made`() throws {
        let missing = #expect(throws: CacheError.self) { try open() }
        #expect(missing?.code == .storageUnavailable)
        #expect(try folder.names == [])
        try Data().write(to: url)
        let empty = #expect(throws: CacheError.self) { try open() }
        #expect(empty?.code == .storageUnavailable)
        #expect(try folder.names == ["store.sqlite"])
    }

    @Test func `a damaged file throws and stays`() throws {
        try Data(repeating: 120, count: 5000).write(to: url)
        let before = try folder.contents()
        let error = #expect(throws: CacheError.self) { try open() }
        #expect(error?.code == .corrupt)
        #expect(try folder.contents() == before)
    }
}
