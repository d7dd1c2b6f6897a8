internal import LarderLocks

extension MemoryCache: Sequence {
    /// An iteration over the entries in memory, least recently used first by the order at its start.
    ///
    /// It changes no entry's recency, and other threads may write in the meantime. An entry that was removed since
    /// the start is skipped, a replaced one has its new value, and an added one is not included.
    public struct Iterator: IteratorProtocol, Sendable {
        private var walk: (any MemoryOrder<Key, Value>)?
        private var position = 0

        init(_ walk: some MemoryOrder<Key, Value>) {
            self.walk = walk
        }

        /// Returns the next entry that still exists and has not expired, or nil at the end.
        public mutating func next() -> (key: Key, value: Value)? {
            guard let walk else { return nil }
            while position < walk.order.count {
                let end = Swift.min(position + MemoryCache<Key, Value>.entriesPerSlice, walk.order.count)
                if let entry = walk.firstEntry(from: &position, to: end) { return entry }
            }
            self.walk = nil
            return nil
        }
    }

    /// Starts an iteration, least recently used first.
    ///
    /// - Complexity: O(n) for the copy of the order under the lock, four bytes and about a nanosecond an entry.
    public func makeIterator() -> Iterator { Iterator(MemoryWalk(self)) }
}

/// An iteration over a memory cache or a memory tier, least recently used first.
public typealias MemoryCacheGenerator<Key: Hashable & Sendable, Value: Sendable> = MemoryCache<Key, Value>.Iterator

/// Entries in memory in the order at the start of an iteration.
protocol MemoryOrder<Key, Value>: Sendable {
    associatedtype Key
    associatedtype Value

    /// The indices of the entries at the start, least recently used first.
    var order: [UInt32] { get }

    /// Returns the first entry of a part of the order that still exists and has not expired, and moves the position
    /// after it.
    func firstEntry(from position: inout Int, to end: Int) -> (key: Key, value: Value)?
}

/// An iteration that the table knows of until this object is released.
final class MemoryWalk<Key: Hashable & Sendable, Value: Sendable>: MemoryOrder {
    /// The entries at the start, least recently used first.
    let order: [UInt32]
    let identifier: UInt64
    private let cache: MemoryCache<Key, Value>

    init(_ cache: MemoryCache<Key, Value>) {
        self.cache = cache
        (identifier, order) = cache.state.withLock { $0.table.beginWalk() }
    }

    deinit {
        cache.state.withLock { $0.table.endWalk(identifier) }
    }

    /// Returns the order in parts of at most so many entries.
    func slices(of length: Int) -> some Sequence<ArraySlice<UInt32>> {
        stride(from: 0, to: order.count, by: length).lazy.map { [order] in order[$0...].prefix(length) }
    }

    func firstEntry(from position: inout Int, to end: Int) -> (key: Key, value: Value)? {
        let rule = cache.rule
        let now = rule.isUnlimited ? 0 : cache.exactNow()
        return cache.state.withLock { state in
            while position < end {
                let index = order[position]
                position += 1
                if state.isServed(index, in: identifier, rule: rule, now: now) {
                    return (state.table.key(at: index), state.table.value(at: index))
                }
            }
            return nil
        }
    }
}
