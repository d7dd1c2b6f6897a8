internal import Dispatch
internal import Synchronization

/// A thread that waits for a load.
final class BlockedCaller<Output: Sendable>: Sendable {
    private let result = Mutex<Result<Output, any Error>?>(nil)
    private let signal = DispatchSemaphore(value: 0)

    func wake(with result: Result<Output, any Error>) {
        self.result.withLock { $0 = result }
        signal.signal()
    }

    func wait() throws -> Output {
        while true {
            if let result = result.withLock({ $0 }) { return try result.get() }
            signal.wait()
        }
    }
}
