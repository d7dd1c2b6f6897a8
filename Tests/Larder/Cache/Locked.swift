import Synchronization

/// A value that many threads of a test change.
final class Locked<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    @discardableResult
    func change<R: Sendable>(_ body: (inout sending Value) -> sending R) -> R { value.withLock(body) }
}
