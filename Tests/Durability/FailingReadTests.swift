import Foundation
import Larder
import LarderTestSupport
import Testing

struct FailingReadTests {
    /// A program opens the store, reads all entries and writes one.
    ///
    /// In each run the tracer fails another read.
    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
    func `whichever read the device fails, no entry is lost, and the failure does not count as damage`() throws {
        let folder = try TemporaryFolder()
        let (url, trace) = (folder("store.sqlite"), folder("trace"))
        var (count, failed) = (50, 0)
        do {
            let manager = try CacheManager(url: url)
            try numbers(manager).setValues((0..<count).map { ($0, Data(repeating: 1, count: 400)) })
            try manager.close()
        }
        let files = ["", "-wal", "-shm"].flatMap { ["-P", url.path + $0] }
        for number in 1...20 {
            let child = try ChildProcess(
                "larder-test-cache", ["read-and-write", url.path],
                through: ["/usr/bin/strace", "-f", "-o", trace.path, "-e", "trace=pread64"] + files
                    + ["-e", "inject=pread64:error=EIO:when=\(number)"])
            let lines = try child.finish().lines
            let place: Comment = "read \(number): \(lines)"
            #expect(!lines.isEmpty, place)
            failed += try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
                .count { $0.contains("(INJECTED)") }
            for line in lines where line.hasPrefix("entries ") { #expect(line == "entries \(count)", place) }
            #expect(!lines.contains { $0.contains("corrupt") }, place)
            #expect(try folder.salvagedNames == [], place)
            let manager = try CacheManager(url: url)
            let found = try numbers(manager).count
            // A write whose failure was reported may be committed all the same.
            #expect(found == count + 1 || (found == count && !lines.contains("wrote")), place)
            count = found
            #expect(try manager.verify().problems == [], place)
            try manager.close()
        }
        #expect(count > 50 && failed > 0)
    }

    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"), arguments: [false, true])
    func `a store that cannot look at the index of its log says so once, and reads what others write`(
        isRefused: Bool
    ) throws {
        let folder = try TemporaryFolder()
        let refusal = isRefused ? ["-e", "inject=mremap:error=ENOSYS"] : []
        let child = try ChildProcess(
            "larder-test-rows", ["unwatched", folder("store.sqlite").path],
            through: ["/usr/bin/strace", "-f", "-o", folder("trace").path, "-e", "trace=mremap"] + refusal)
        #expect(try child.finish().lines == (isRefused ? ["unwatched", "read"] : ["read"]))
    }

    private func numbers(_ manager: CacheManager) throws -> Cache<Int, Data> {
        try manager.cache(named: "numbers", version: "1", maxAge: .unlimited)
    }
}
