internal import Synchronization

/// A pass over a memory cache, least recently used first by the order at its start.
///
/// It changes nobody's recency, and others may write meanwhile: what was removed since the start is skipped, what was
/// added is not waited for, what was replaced comes with its new value. At its end it gives nil for ever.
public struct MemoryCacheGenerator<Key: Hashable & Sendable, Value: Sendable>: IteratorProtocol, Sendable {
    private var walk: (any MemoryOrder<Key, Value>)?
    private var position = 0

    init(_ walk: some MemoryOrder<Key, Value>) {
        self.walk = walk
    }

    /// The next entry that is still there and not over, or nil at the end.
    public mutating func next() -> (key: Key, value: Value)? {
        guard let walk else { return nil }
        while position < walk.order.count {
            let end = min(position + MemoryCache<Key, Value>.entriesPerSlice, walk.order.count)
            if let entry = walk.firstEntry(from: &position, to: end) { return entry }
        }
        self.walk = nil
        return nil
    }
}

extension MemoryCache: Sequence {
    /// Starts a pass, least recently used first.
    ///
    /// - Complexity: O(n) for the copy of the order under the lock, four bytes and about a nanosecond an entry.
    public func makeIterator() -> MemoryCacheGenerator<Key, Value> {
        MemoryCacheGenerator(MemoryWalk(self))
    }
}

/// The entries of something in memory in the order of a pass's start.
protocol MemoryOrder<Key, Value>: Sendable {
    associatedtype Key
    associatedtype Value

    /// The places of the entries at the start, least recently used first.
    var order: [UInt32] { get }

    /// The first entry of a part of the order that is still there and not over; moves the position behind it.
    func firstEntry(from position: inout Int, to end: Int) -> (key: Key, value: Value)?
}

/// A walk the table knows of, until this object is released.
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

    /// The order in parts of so many entries.
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
