import Foundation
import LarderTestSupport
import Testing

/// What only a process of its own can show of caches.
struct CacheProcessTests {
    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
    func `a hit in memory makes no system call, also while another connection holds the writer's lock`() throws {
        let folder = try TemporaryFolder()
        let trace = folder("trace")
        let child = try ChildProcess(
            "larder-test-cache", ["hit", folder("store.sqlite").path], through: Strace.wrapper(log: trace))
        #expect(try child.finish().lines == ["begin", "end", "true 10200"])
        let calls = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
        let begin = try #require(calls.firstIndex { $0.contains("\"begin\\n\"") })
        let end = try #require(calls.firstIndex { $0.contains("\"end\\n\"") })
        let thread = calls[begin].prefix { $0 != " " }
        let between = calls[(begin + 1)..<end].filter { call in
            // If other threads interrupt the first line, the tracer writes its end on a line of its own.
            // The lock of the standard library asks once for the number of the thread, in each place that inlines it.
            call.hasPrefix(thread + " ") && !call.contains("<... write resumed>") && !call.contains("gettid()")
        }
        #expect(between == [], "\(between)")
    }

    @Test(.enabled(if: OneProcessor.isAvailable, "a long test, or not on this system"))
    func `no asynchronous form blocks the pool, though it has one thread and the disk is held up`() throws {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["hold-up", folder("store.sqlite").path], through: OneProcessor.wrapper)
        #expect(try child.finish().lines == ["one thread true", "held up 0 true decoded on pool 0", "done 16"])
    }

    @Test(
        .enabled(
            if: FileManager.default.fileExists(atPath: "/proc/self/status") && !ChildProcess.isSanitized,
            "not on this system, or the memory of the sanitizer would count"))
    func `a file of any size becomes a value with a megabyte or two of memory`() throws {
        let folder = try TemporaryFolder()
        let megabytes = LongTests.areEnabled ? 1024 : 48
        let child = try ChildProcess("larder-test-cache", ["take-file", folder.url.path, "\(megabytes)"])
        let lines = try child.finish().lines
        #expect(lines.dropFirst() == ["same true", "problems []"])
        let grown = try #require(lines.first?.split(separator: " ").last.flatMap { Int($0) })
        #expect(grown <= 2)
    }

    @Test(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
    func `a store in memory creates no file, whatever it holds and whatever is done with it`() throws {
        let (folder, log) = (try TemporaryFolder(), try TemporaryFolder())
        let child = try ChildProcess(
            "larder-test-cache", ["in-memory", folder.url.path],
            through: Strace.wrapper(
                "-s", "200", "-e", "trace=open,openat,openat2,creat,mkdir,mkdirat,mknod,mknodat,memfd_create,write",
                log: log("trace")),
            environment: ["TMPDIR": folder.url.path, "SQLITE_TMPDIR": folder.url.path])
        #expect(
            try child.finish().lines == [
                "begin", "true", "true", "true", "true true", "1000000", "true true", "end true",
            ])
        let calls = try String(contentsOf: log("trace"), encoding: .utf8).split(separator: "\n")
        let begin = try #require(calls.firstIndex { $0.contains("\"begin\\n\"") })
        let end = try #require(calls.firstIndex { $0.contains("\"end true\\n\"") })
        let making = calls[begin..<end].filter { call in
            ["O_CREAT", "O_TMPFILE", "creat(", "mkdir", "mknod", "memfd"].contains { call.contains($0) }
        }
        #expect(making == [], "\(making)")
    }
}
