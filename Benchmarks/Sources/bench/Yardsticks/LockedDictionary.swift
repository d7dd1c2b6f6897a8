import Synchronization

/// What the memory cache is measured by: a dictionary behind a lock, which neither orders nor evicts.
final class LockedDictionary<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let state = Mutex<[Key: Value]>([:])

    subscript(key: Key) -> Value? {
        get { state.withLock { $0[key] } }
        set { state.withLock { $0[key] = newValue } }
    }

    /// Lists all keys in one hold of the lock, as a dictionary behind a lock has to.
    var keys: [Key] { state.withLock { Array($0.keys) } }
}
