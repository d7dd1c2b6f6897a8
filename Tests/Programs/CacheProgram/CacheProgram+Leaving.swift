import Foundation
import Larder
import LarderTestSupport

extension CacheProgram {
    /// A manager that nobody lets go of, as a global is.
    nonisolated(unsafe) private static var manager: CacheManager?

    /// Writes two values, reads the first, and ends with the manager open.
    ///
    /// - Parameter isHeld: Whether a transaction that does not end holds the writing side meanwhile.
    static func leaveOpen(_ path: String, isHeld: Bool) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path))
        Self.manager = manager
        let cache: Cache<Int, String> = try manager.cache(
            named: "a", version: "1", maxAge: .days(1), options: CacheOptions(accessGrain: .zero))
        for key in 1...2 { try cache.setValue("value", forKey: key) }
        if isHeld {
            let isInside = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                do {
                    try manager.transaction { _ in
                        isInside.signal()
                        while true { pause() }
                    }
                } catch {
                    say("error", error)
                }
            }
            isInside.wait()
        }
        say(cache[1] ?? "nothing")
    }
}
