internal import Foundation
internal import Synchronization

/// A few threads on which reads of tasks wait for the disk, as many as a store has connections that read.
///
/// They start with the first read, and stay. Code of the program runs here only as decoding does, so no thread is kept
/// waiting by another one.
enum Workers {
    private static let threadCount = 4
    private static let waiting = Mutex<[@Sendable () -> Void]>([])
    private static let arrival = DispatchSemaphore(value: 0)

    private static let areStarted: Bool = {
        for number in 0..<threadCount {
            let thread = Thread {
                while true {
                    arrival.wait()
                    let work = waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                    work?()
                }
            }
            thread.name = "larder.read.\(number)"
            thread.start()
        }
        return true
    }()

    /// Runs work that may wait for the disk, without a thread of the cooperative pool.
    static func run<R: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        let result: Result<R, Failure> = await withCheckedContinuation { continuation in
            _ = areStarted
            waiting.withLock { waiting in
                waiting.append { continuation.resume(returning: Result { () throws(Failure) in try work() }) }
            }
            arrival.signal()
        }
        return try result.get()
    }
}
