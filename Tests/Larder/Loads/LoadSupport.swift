import Dispatch
import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// A cache as far as single flight sees one.
final class LoadCache: Sendable {
    let loads = Loads<Int, String>(name: "loaded")
    let storings = Counter()
    private let values = Mutex<[Int: String]>([:])

    subscript(key: Int) -> String? {
        get { values.withLock { $0[key] } }
        set {
            values.withLock { values in
                values[key] = newValue
                _ = loads.noteWrite(key)
            }
        }
    }

    func removeAll() {
        values.withLock { values in
            values = [:]
            _ = loads.noteClear()
        }
    }

    /// What a limit or an age does: no flight hears of it.
    func evict(_ key: Int) { values.withLock { $0[key] = nil } }

    private func store(_ made: [Int: String], _ permit: LoadPermit<Int>) -> [Int: String] {
        storings.increment()
        return values.withLock { values in
            var result = made
            for (key, value) in made {
                if permit.mayStore(key) {
                    values[key] = value
                } else if permit.isBeaten(key) {
                    result[key] = values[key] ?? value
                }
            }
            return result
        }
    }

    func plan(_ generate: @escaping @Sendable ([Int]) async throws -> [Int: String]) -> LoadPlan<Int, String> {
        LoadPlan(find: { self.present($0) }, load: { self.store(try await generate($0), $1) })
    }

    func value(_ key: Int, generate: @escaping @Sendable (Int) async throws -> String) async throws -> String {
        try await values([key]) { _ in [key: try await generate(key)] }[key] ?? ""
    }

    func syncValue(_ key: Int, generate: (Int) throws -> String) throws -> String {
        try syncValues([key]) { _ in [key: try generate(key)] }[key] ?? ""
    }

    func values(_ keys: [Int], generate: @escaping @Sendable ([Int]) async throws -> [Int: String]) async throws
        -> [Int: String]
    {
        try await loads.values(forKeys: keys) { plan(generate) }
    }

    func syncValues(_ keys: [Int], generate: ([Int]) throws -> [Int: String]) throws -> [Int: String] {
        try loads.values(forKeys: keys, find: present, load: { store(try generate($0), $1) })
    }

    private func present(_ keys: [Int]) -> [Int: String] {
        values.withLock { values in values.filter { keys.contains($0.key) } }
    }

    /// Waits until so many callers wait.
    func waiting(_ count: Int) async throws {
        try await Waiting.until { loads.waitingCount == count }
    }
}

/// Lets code pass once it was opened; its waiting ends early for a cancelled task.
final class LoadGate: Sendable {
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
