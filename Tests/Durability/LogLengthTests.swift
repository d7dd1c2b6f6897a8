import Foundation
import Larder
import LarderTestSupport
import Testing

/// The length of the log while another process reads.
struct LogLengthTests {
    @Test(.enabled(if: LongTests.areEnabled, "a long test"), arguments: [0, 1, 50])
    func `a process that reads all the time does not make the log of another one grow`(pauseMilliseconds: Int) throws {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        try CacheManager.makeStore(at: url, rows: 1)
        let child = try ChildProcess("larder-test-store", ["read-on", url.path, "\(pauseMilliseconds)"])
        #expect(child.line() == "reading")
        var configuration = CacheManager.Configuration.patient
        // Nothing but what is asked for here makes the log shorter.
        configuration.maintenanceInterval = nil
        let manager = try CacheManager(url: url, configuration: configuration)
        let store = try manager.writableStore()
        var longest = 0
        func insert(_ number: Int) throws {
            try store.insertRow(named: "\(number) " + String(repeating: "x", count: 300))
        }
        for number in 0..<20_000 {
            try insert(number)
            guard number % 20 == 19 else { continue }
            // A row of the table of caches is in three indexes, and takes some 15 pages of log. As soon as one would run in the background, so that the length is not a matter of luck.
            if try logLength(url) > 4 << 20 { try store.checkpoint() }
            longest = max(longest, try logLength(url))
            guard try logLength(url) > 8 << 20 else { continue }
            // Nothing but a read that is going on may stand in the way of a log of this length: the machine may keep the
            // processor from it for long. Between two reads the reader must not.
            try child.tell("wait")
            #expect(child.line() == "waiting")
            try store.checkpoint()
            try insert(-number)
            let length = try logLength(url)
            #expect(length <= 4 << 20, "\(length >> 10) KiB")
            try child.goOn()
        }
        try manager.close()
        try child.goOn()
        #expect(try child.finish().lines.last?.hasPrefix("read ") == true)
        // Some 500 pages for a hundred sets come on top of 8 MiB.
        #expect(longest < 12 << 20, "\(longest >> 10) KiB")
    }

    private func logLength(_ url: URL) throws -> Int {
        try FileManager.default.attributesOfItem(atPath: url.path + "-wal")[.size] as? Int ?? 0
    }
}
