import Foundation
import Larder
import LarderTestSupport

/// A process that is ended while it saves.
extension CacheProgram {
    /// A value that says when it is encoded, and then takes until the next line comes.
    private struct Paused: Codable, Sendable {
        func encode(to encoder: any Encoder) throws {
            say("saving")
            _ = readLine()
            var container = encoder.singleValueContainer()
            try container.encode(1)
        }
    }

    /// Saves a memory cache, with a stop in the middle.
    static func saveAndWait(_ path: String) throws {
        let cache = MemoryCache<Int, Paused>(clearsOnMemoryPressure: false)
        cache[1] = Paused()
        try cache.save(to: URL(fileURLWithPath: path))
        say("saved")
    }
}
