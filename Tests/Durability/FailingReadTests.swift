import Foundation
import Larder
import LarderTestSupport
import Testing

/// A process whose reads the device fails, one at a time.
struct FailingReadTests {
    private static let strace = "/usr/bin/strace"

    @Test(
        .enabled(
            if: Strace.isAvailable, "a long test, or strace is missing"))
    func `whichever read fails once, the store stays in place with every row`() throws {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        try CacheManager.makeStore(at: url, rows: 50)
        let trace = folder("trace")
        var rows = 50
        var failed = 0
        for number in 1...20 {
            let files = ["", "-wal", "-shm"].flatMap { ["-P", url.path + $0] }
            let child = try ChildProcess(
                "larder-test-store", ["read-and-write", url.path],
                through: [Self.strace, "-f", "-o", trace.path, "-e", "trace=pread64"] + files
                    + ["-e", "inject=pread64:error=EIO:when=\(number)"])
            let lines = try child.finish().lines
            #expect(!lines.isEmpty)
            failed += try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
                .count { $0.contains("(INJECTED)") }
            for line in lines where line.hasPrefix("rows ") && Int(line.dropFirst(5)) != nil {
                #expect(line == "rows \(rows)", "read \(number): \(lines)")
            }
            #expect(!lines.contains { $0.contains("corrupt") }, "read \(number): \(lines)")
            #expect(try !folder.names.contains { $0.contains("corrupt") }, "read \(number): \(lines)")
            let count = try CacheManager.rowCount(at: url)
            #expect(count == rows || count == rows + 1, "read \(number): \(lines)")
            rows = count
        }
        #expect(rows > 50)
        #expect(failed > 0, "no read was failed")
    }
}
