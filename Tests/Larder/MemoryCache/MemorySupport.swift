import Larder
import LarderTestSupport

/// A key whose hashes are all equal.
struct CollidingKey: Hashable, Sendable {
    let number: Int

    func hash(into hasher: inout Hasher) {}
}

extension MemoryCache {
    /// A cache in the time of a test, which no pressure of the system concerns.
    static func inTime(
        _ time: ManualClock, countLimit: Int = .max, costLimit: Int = .max, byteLimit: Int = .max,
        maxAge: MaxAge = .unlimited, onRemoval: OnRemoval? = nil
    ) -> MemoryCache {
        MemoryCache(
            countLimit: countLimit, costLimit: costLimit, byteLimit: byteLimit, maxAge: maxAge,
            clearsOnMemoryPressure: false, onRemoval: onRemoval, seed: HashSeed(), injectedClock: { time.now },
            timekeeper: time.timekeeper)
    }
}
