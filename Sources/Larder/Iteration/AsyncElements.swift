internal import LarderLocks
internal import LarderStore

/// Keys, values or entries of a cache for tasks, in the order of the sequence that they come from.
///
/// ```swift
/// for try await key in articles.keys.async { … }
/// ```
///
/// A page is read and decoded at a time, off the cooperative pool, and nothing is held between pages. What ends an iteration early
/// is thrown. A cancelled task gets `CancellationError` at its next step.
public struct AsyncElements<Element: Sendable>: AsyncSequence, Sendable {
    /// Returns the next page; nil at the end.
    typealias NextPage = @Sendable () async throws -> [Element]?

    private let begin: @Sendable () -> NextPage

    init(_ begin: @escaping @Sendable () -> NextPage) { self.begin = begin }

    /// Starts an iteration.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(nextPage: begin()) }

    /// An iteration over elements.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        fileprivate let nextPage: NextPage
        private var page: [Element] = []
        private var position = 0

        fileprivate init(nextPage: @escaping NextPage) { self.nextPage = nextPage }

        /// Returns the next element, or nil at the end.
        public mutating func next() async throws -> Element? {
            try Task.checkCancellation()
            while position == page.count {
                guard let next = try await nextPage() else { return nil }
                (page, position) = (next, 0)
            }
            position += 1
            return page[position - 1]
        }
    }
}

/// The entries of a cache for tasks, in the order of keys, see ``Cache/async``.
public typealias AsyncCacheSequence<Key: Sendable, Value: Sendable> = AsyncElements<(key: Key, value: Value)>

extension Cache {
    /// The entries for tasks, in the order of keys.
    ///
    /// An iteration is as one over the cache itself, see ``Iterator``, but throws what ends it.
    public var async: AsyncCacheSequence<Key, Value> {
        elements(of: { [self] in rowIteration() }, { [self] in decoded($0) })
    }

    /// Returns elements for tasks.
    ///
    /// - Parameters:
    ///   - limit: The greatest number of elements.
    ///   - begin: Begins an iteration; it may wait for the disk.
    ///   - element: Returns what a row is; nil if it does not decode.
    fileprivate func elements<Row: Sendable, Element: Sendable>(
        atMost limit: Int = .max, of begin: @escaping @Sendable () throws(CacheError) -> PagedIteration<Row>,
        _ element: @escaping @Sendable (Row) -> Element?
    ) -> AsyncElements<Element> {
        AsyncElements {
            let state = Mutex<(rows: PagedIteration<Row>?, left: Int)>((nil, Swift.max(0, limit)))
            return {
                try await self.reading { () throws(CacheError) in
                    let (begun, left) = state.withLock { $0 }
                    if left == 0 { return nil }
                    var rows = if let begun { begun } else { try begin() }
                    guard let page = try rows.nextPage() else { return nil }
                    var found: [Element] = []
                    for row in page where found.count < left {
                        if let element = element(row) { found.append(element) }
                    }
                    state.withLock { [rows, found] in $0 = (rows, left - found.count) }
                    return found
                }
            }
        }
    }
}

extension CacheKeys {
    /// The keys for tasks, in their order.
    public var async: AsyncElements<Key> { cache.elements(of: { [cache] in cache.keyIteration() }, { $0 }) }
}

extension CacheValues {
    /// The values for tasks, in the order of their keys.
    public var async: AsyncElements<Value> {
        cache.elements(of: { [cache] in cache.rowIteration() }, { [cache] in cache.decoded($0)?.value })
    }
}

extension CacheEntries {
    /// The entries for tasks, in the order of the moment at which the first is asked for.
    public var async: AsyncElements<CacheEntry<Key, Value>> {
        cache.elements(atMost: limit ?? .max, of: { () throws(CacheError) in try rows() }) { [cache] row in
            cache.decoded(row).map { CacheEntry($0.key, $0.value, row.header) }
        }
    }
}

extension MemoryTier {
    /// The entries in memory that may be served for tasks, least recently used first.
    ///
    /// After a commit of another process the disk is asked whether they are still good, off the cooperative pool.
    public var async: AsyncElements<(key: Key, value: Value)> {
        AsyncElements { [self] in
            let rest = Mutex<ArraySlice<Key>?>(nil)
            return {
                await cache.reading {
                    let keys = rest.withLock { $0 } ?? recentKeys[...]
                    if keys.isEmpty { return nil }
                    rest.withLock { $0 = keys.dropFirst(256) }
                    return keys.prefix(256).compactMap { key in copy(of: key).map { (key, $0) } }
                }
            }
        }
    }
}
