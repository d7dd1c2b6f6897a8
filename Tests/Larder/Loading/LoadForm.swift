import Larder
import LarderTestSupport

/// The calls that load the value of key 1.
enum LoadForm: CaseIterable {
    case value, values, entry, generated
    case valueInTask, valuesInTask, entryInTask, generatedInTask, generator

    /// The forms for tasks.
    static let asynchronous: [LoadForm] = allCases.filter { !$0.isOnThread }

    /// A Boolean value that indicates whether the closure runs on the thread of its caller.
    var isOnThread: Bool { [.value, .values, .entry, .generated].contains(self) }

    /// Calls the cache, with a closure that returns a value once a gate is open.
    ///
    /// - Parameter begun: Opened by the closure.
    func load<Value: Sendable>(
        _ value: Value, in cache: Cache<Int, Value>, begun: LoadGate = LoadGate(),
        gate: LoadGate = LoadGate(isOpen: true)
    ) async throws -> Value? {
        let make: @Sendable () throws -> Value = {
            begun.open()
            try gate.wait()
            return value
        }
        let makeInTask: @Sendable () async throws -> Value = {
            begun.open()
            try await gate.waitInTask()
            return value
        }
        switch self {
        case .value: return try await onThread { try cache.value(forKey: 1) { _ in try make() } }
        case .values: return try await onThread { try cache.values(forKeys: [1]) { _ in [1: try make()] } }[1]
        case .entry: return try await onThread { try cache.entry(forKey: 1) { _, _ in .value(try make()) }.value }
        case .generated: return try await onThread { try cache.value(forKey: 1) { _, _ in .value(try make()) } }
        case .valueInTask: return try await cache.value(forKey: 1) { _ in try await makeInTask() }
        case .valuesInTask:
            return try await cache.values(forKeys: [1]) { _ in [1: try await makeInTask()] }[1]
        case .entryInTask: return try await cache.entry(forKey: 1) { _, _ in .value(try await makeInTask()) }.value
        case .generatedInTask: return try await cache.value(forKey: 1) { _, _ in .value(try await makeInTask()) }
        case .generator:
            let generator = cache.generator { _ in try await makeInTask() }
            return try await generator(1)
        }
    }
}
