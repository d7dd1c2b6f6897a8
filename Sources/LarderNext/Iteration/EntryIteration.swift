internal import LarderStore

/// An iteration over the entries of a cache, page by page.
///
/// It holds nothing between pages. Which entries have expired is decided once for each page.
@usableFromInline
struct EntryIteration<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    /// A key with its value and the row of both.
    struct Found: Sendable {
        let key: Key
        let value: Value
        let row: StoredRow

        var entry: CacheEntry<Key, Value> {
            CacheEntry(
                key: key, value: value, extendedData: row.facts.meta.extendedData, metadata: EntryMetadata(row.facts),
                isExpired: false)
        }
    }

    private let cache: Cache<Key, Value>
    /// Nil at the end, and after a failure.
    private var pages: RowPages?
    private var page: ArraySlice<StoredRow> = []
    private var now = Int64.min

    init(_ cache: Cache<Key, Value>, _ pages: RowPages = RowPages()) { (self.cache, self.pages) = (cache, pages) }

    /// Returns the next entry, or nil at the end and after a failure, which is reported.
    mutating func next() -> Found? {
        repeat {
            if let found = nextOfPage() { return found }
            do throws(CacheError) {
                try turnPage()
            } catch {
                pages = nil
                cache.reportEndedIteration(error)
            }
        } while pages != nil || !page.isEmpty
        return nil
    }

    /// Returns the next entry for a task, or nil at the end.
    mutating func next() async throws -> Found? {
        while true {
            try Task.checkCancellation()
            if let found = nextOfPage() { return found }
            if pages == nil { return nil }
            let copy = self
            do throws(CacheError) {
                self = try await cache.reading { () throws(CacheError) in
                    var next = copy
                    try next.turnPage()
                    return next
                }
            } catch {
                pages = nil
                throw error
            }
        }
    }

    private mutating func nextOfPage() -> Found? {
        while let row = page.popFirst() {
            if row.facts.end >= now, let key = cache.key(of: row.facts), let value = cache.valueOrReported(of: row) {
                return Found(key: key, value: value, row: row)
            }
        }
        return nil
    }

    private mutating func turnPage() throws(CacheError) {
        guard var rest = pages else { return }
        page = try cache.throwing("read entries") { () throws(StoreError) in try rest.next(of: cache.rows) }[...]
        pages = rest.isDone ? nil : rest
        now = cache.rows.store.time.now()
    }
}

/// The pages of rows that an iteration reads, in the order of keys or of a list.
struct RowPages: Sendable {
    private let range: KeyRange
    private let withAccess: Bool
    private var list: (rows: RowList, position: Int)?
    private var last: PagePosition?
    private(set) var isDone = false
    /// The number of rows of the next page, which comes to about a megabyte.
    private var limit = 16

    init(_ range: KeyRange = KeyRange(), withAccess: Bool = false) {
        (self.range, self.withAccess) = (range, withAccess)
    }

    init(_ list: RowList) {
        self.init(withAccess: true)
        self.list = (list, 0)
    }

    mutating func next(of rows: CacheRows) throws(StoreError) -> [StoredRow] {
        let page: [StoredRow]
        if let (list, position) = list {
            let end = min(list.count, position + limit)
            page = try rows.rows(list, position..<end)
            self.list = (list, end)
            isDone = end == list.count
        } else {
            let found = try rows.rows(range, after: last, limit: limit, withAccess: withAccess)
            (page, last, isDone) = (found.rows, found.next, found.next == nil)
        }
        let size = page.reduce(1) { $0 + $1.payload.count } / max(1, page.count)
        limit = max(1, min(CacheRows.pageLimit, (1 << 20) / (size + 1)))
        return page
    }
}

extension Cache {
    /// Returns the key of a row; nil if it does not decode, which is reported.
    func key(of facts: RowFacts) -> Key? {
        do throws(CacheError) {
            return try shared.keyCodec.key(facts.key, cache: name)
        } catch {
            noteUndecodable(facts, error)
            return nil
        }
    }

    /// Returns the value of a row; nil if it does not decode, which is reported.
    func valueOrReported(of row: StoredRow) -> Value? {
        do throws(CacheError) { return try decode(row) } catch { return nil }
    }

    /// Reports an iteration that ended early, which cannot throw.
    func reportEndedIteration(_ error: CacheError) {
        shared.copies.count { $0.failures += 1 }
        let message = "An iteration over the cache \"\(name)\" ended early. \(error.message)"
        manager.reporter.report(CacheEvent(.readFailed, cacheName: name, message: message), .error, error: error)
    }
}
