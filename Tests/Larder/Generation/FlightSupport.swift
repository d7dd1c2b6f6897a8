import Dispatch
import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// A cache as far as single flight sees one.
final class FlightCache: Sendable {
    let flights = Flights<Int, String>(name: "flown")
    let storings = Counter()
    private let values = Mutex<[Int: String]>([:])

    subscript(key: Int) -> String? {
        get { values.withLock { $0[key] } }
        set {
            values.withLock { values in
                values[key] = newValue
                _ = flights.noteWrite(key)
            }
        }
    }

    func removeAll() {
        values.withLock { values in
            values = [:]
            _ = flights.noteClear()
        }
    }

    /// What a limit or an age does: no flight hears of it.
    func evict(_ key: Int) { values.withLock { $0[key] = nil } }

    func store(_ made: [Int: String], _ permit: FlightPermit<Int>) -> [Int: String] {
        storings.increment()
        values.withLock { values in
            for (key, value) in made where permit.mayStore(key) { values[key] = value }
        }
        return made
    }

    func value(_ key: Int, generate: @escaping @Sendable (Int) async throws -> String) async throws -> String {
        try await flights.value(
            forKey: key, find: { self[$0] }, generate: generate,
            store: { key, value, permit in self.store([key: value], permit)[key] ?? "" })
    }

    func syncValue(_ key: Int, generate: (Int) throws -> String) throws -> String {
        try flights.value(
            forKey: key, find: { self[$0] }, generate: generate,
            store: { key, value, permit in self.store([key: value], permit)[key] ?? "" })
    }

    func values(_ keys: [Int], generate: @escaping @Sendable ([Int]) async throws -> [Int: String]) async throws
        -> [Int: String]
    {
        try await flights.values(
            forKeys: keys, find: { keys in self.present(keys) }, generate: generate,
            store: { self.store($0, $1) })
    }

    func syncValues(_ keys: [Int], generate: ([Int]) throws -> [Int: String]) throws -> [Int: String] {
        try flights.values(forKeys: keys, find: present, generate: generate, store: store)
    }

    private func present(_ keys: [Int]) -> [Int: String] {
        values.withLock { values in values.filter { keys.contains($0.key) } }
    }

    /// Waits until so many callers wait.
    func waiting(_ count: Int) async throws {
        try await Waiting.until { flights.waitingCount == count }
    }
}

/// Lets code pass once it was opened; its waiting ends early for a cancelled task.
final class FlightGate: Sendable {
    private let signal = DispatchSemaphore(value: 0)
    private let (stream, continuation) = AsyncStream.makeStream(of: Void.self)

    func open() {
        continuation.finish()
        signal.signal()
    }

    func pass() async throws {
        for await _ in stream {}
        try Task.checkCancellation()
    }

    /// Blocks the thread.
    func block() {
        signal.wait()
        signal.signal()
    }
}

/// Runs a task outside the pool, so that its code may block.
final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "task")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

extension CacheError {
    static func isRecursion(_ error: any Error) -> Bool { (error as? CacheError)?.code == .recursiveGeneration }

    static func isRecursion(_ result: Result<String, any Error>) -> Bool {
        if case .failure(let error) = result { isRecursion(error) } else { false }
    }
}
