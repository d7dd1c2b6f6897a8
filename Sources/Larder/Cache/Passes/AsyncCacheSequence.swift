/// The entries of a sub-cache for tasks: in key order, without holding up the caller's executor.
///
/// A pass is as one over the cache itself, see ``Cache/Iterator``, but throws what ends it. A cancelled task gets
/// `CancellationError` at its next step.
public struct AsyncCacheSequence<Key: Codable & Hashable & Sendable, Value: Sendable>: AsyncSequence, Sendable {
    /// A key with its value.
    public typealias Element = (key: Key, value: Value)

    private let cache: Cache<Key, Value>

    init(_ cache: Cache<Key, Value>) {
        self.cache = cache
    }

    /// Starts a pass over the entries.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pass: EntryPass(cache)) }

    /// A pass over the entries.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        fileprivate var pass: EntryPass<Key, Value>

        /// The next entry, or nil at the end.
        public mutating func next() async throws -> (key: Key, value: Value)? {
            try await pass.next().map { ($0.key, $0.value) }
        }
    }
}

extension Cache {
    /// The entries, in key order, for tasks.
    public var async: AsyncCacheSequence<Key, Value> { AsyncCacheSequence(self) }
}
