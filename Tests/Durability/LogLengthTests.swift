import Foundation
import Larder
import LarderTestSupport
import Testing

/// The length of the log while another process reads.
struct LogLengthTests {
    @Test(arguments: [0, 1, 50])
    func `a process that reads all the time does not make the log of another one grow`(pauseMilliseconds: Int) throws {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        try CacheManager.makeStore(at: url, rows: 1)
        let child = try ChildProcess("larder-test-store", ["read-on", url.path, "\(pauseMilliseconds)"])
        #expect(child.line() == "reading")
        let manager = try CacheManager(url: url)
        let store = try manager.writableStore()
        var longest = 0
        for number in 0..<20_000 {
            try store.insertRow(named: "\(number) " + String(repeating: "x", count: 300))
            guard number % 100 == 99 else { continue }
            // As soon as one would run in the background, so that the length is not a matter of luck.
            if try logLength(url) > 4 << 20 { try store.checkpoint() }
            longest = max(longest, try logLength(url))
        }
        try manager.close()
        try child.goOn()
        #expect(try child.finish().lines.last?.hasPrefix("read ") == true)
        // 5 to 8 MiB on a quiet machine, 17 MiB seen on a busy one: a reader that is not given the processor in the
        // middle of a read stands in the log meanwhile.
        #expect(longest < 48 << 20, "\(longest >> 10) KiB")
    }

    private func logLength(_ url: URL) throws -> Int {
        try FileManager.default.attributesOfItem(atPath: url.path + "-wal")[.size] as? Int ?? 0
    }
}
