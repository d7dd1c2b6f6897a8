internal import Foundation
internal import LarderLocks

/// A few threads on which tasks' reads wait for the disk, as many as a store has reading connections.
///
/// They start with the first read, and stay. No read of a file waits for a running body, so the threads are never
/// kept for long. A store in memory has only the writer's connection, and its reads do not use these threads.
enum Workers {
    private static let threadCount = 4

    private struct Queue {
        var waiting: [(@Sendable () -> Void)?] = []
        var first = 0

        mutating func take() -> (@Sendable () -> Void)? {
            guard first < waiting.count else { return nil }
            defer {
                first += 1
                if first == waiting.count { (waiting, first) = ([], 0) }
            }
            return waiting[first].take()
        }
    }

    private static let queue = Mutex(Queue())
    private static let arrival = DispatchSemaphore(value: 0)

    private static let areStarted: Bool = {
        for number in 0..<threadCount {
            let thread = Thread {
                while true {
                    arrival.wait()
                    #if canImport(Darwin)
                    autoreleasepool { queue.withLock { $0.take() }?() }
                    #else
                    queue.withLock { $0.take() }?()
                    #endif
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
            queue.withLock { queue in
                queue.waiting.append { continuation.resume(returning: Result { () throws(Failure) in try work() }) }
            }
            arrival.signal()
        }
        return try result.get()
    }
}
