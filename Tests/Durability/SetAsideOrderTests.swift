import Foundation
import Larder
import LarderTestSupport
import Testing

/// What reaches the disk in which order when a damaged store is put aside.
struct SetAsideOrderTests {
    private static let strace = "/usr/bin/strace"

    @Test(
        .enabled(
            if: Strace.isAvailable, "a long test, or strace is missing"))
    func `the folder is synced behind the database's move and behind the log's, before a new database is made`() throws
    {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        try CacheManager.makeStore(at: url, rows: 50)
        try FileManager.default.createDirectory(
            at: folder.url.appendingPathComponent("store.files"), withIntermediateDirectories: true)
        try Data("no database here".utf8).write(to: url)
        try Data("nor a log".utf8).write(to: folder("store.sqlite-wal"))
        let trace = folder("trace")
        let child = try ChildProcess(
            "larder-test-store", ["open", url.path],
            through: [Self.strace, "-f", "-y", "-o", trace.path, "-e", "trace=rename,renameat,renameat2,fsync,openat"])
        #expect(child.line() == "opened")
        try child.goOn()
        try child.finish()
        var calls: [String] = []
        for line in try String(contentsOf: trace, encoding: .utf8).split(separator: "\n") {
            let call: String
            if line.contains("rename"), line.contains("store.sqlite\"") {
                call = "move database"
            } else if line.contains("rename"), line.contains("store.sqlite-wal\"") {
                call = "move log"
            } else if line.contains("rename"), line.contains("store.files\"") {
                call = "move files"
            } else if line.contains("fsync("), line.contains("<\(folder.url.path)>") {
                call = "sync folder"
            } else if line.contains("store.sqlite\""), line.contains("O_EXCL") {
                call = "make database"
            } else {
                continue
            }
            // Twice is as good as once.
            if calls.last != call { calls.append(call) }
        }
        #expect(
            Array(calls.prefix(6)) == [
                "move database", "sync folder", "move log", "move files", "sync folder", "make database",
            ], "\(calls)")
    }
}
