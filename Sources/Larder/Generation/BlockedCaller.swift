internal import Dispatch
internal import Synchronization

/// A thread that waits for its landing.
final class BlockedCaller<Key: Hashable & Sendable, Output: Sendable>: Sendable {
    typealias Landing = Result<FlightLanding<Key, Output>, any Error>

    private let landing = Mutex<Landing?>(nil)
    private let signal = DispatchSemaphore(value: 0)

    func wake(with result: Landing) {
        landing.withLock { $0 = result }
        signal.signal()
    }

    func wait() throws -> FlightLanding<Key, Output> {
        while true {
            if let landing = landing.withLock({ $0 }) { return try landing.get() }
            signal.wait()
        }
    }
}
