import Foundation
import Larder
import LarderTestSupport

/// What a cache with default limits takes of the process.
extension CacheProgram {
    /// Fills a cache with far more than its memory holds, and says how many bytes the process grew by for that.
    static func bound(_ path: String) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: .patient)
        let cache: Cache<Int, Bool> = try manager.cache(named: "bound", version: "1", maxAge: .unlimited)
        func fill(_ count: Int) throws {
            for start in stride(from: 0, to: count, by: 1000) {
                try cache.setValues((start..<start + 1000).map { ($0, $0.isMultiple(of: 2)) })
            }
        }
        // The page caches of SQLite, and the buffers of writes.
        cache.memory.byteLimit = 0
        try fill(100_000)
        let before = try resident()
        cache.memory.byteLimit = MemoryLimits.defaultByteLimit
        try fill(1_000_000)
        say("grew", try resident() - before, cache.memory.count, cache.memory.totalBytes)
        try manager.close()
    }

    private static func resident() throws -> Int {
        let words = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        return (Int(words[1]) ?? 0) * Int(getpagesize())
    }
}
