public import LarderStore

/// An iteration that reads page by page, and holds nothing of the store between pages.
@usableFromInline
struct PagedIteration<Element: Sendable>: Sendable {
    private let read: @Sendable (inout RowPages) throws(CacheError) -> [Element]
    private let report: @Sendable (CacheError) -> Void
    /// Nil at the end, and after a failure.
    private var pages: RowPages?
    @usableFromInline var page: [Element] = []
    @usableFromInline var position = 0

    /// - Parameters:
    ///   - report: Called with the failure that ends the iteration, unless a task gets it.
    ///   - read: Returns the elements of the next page.
    @usableFromInline
    init(
        _ pages: RowPages, report: @escaping @Sendable (CacheError) -> Void,
        read: @escaping @Sendable (inout RowPages) throws(CacheError) -> [Element]
    ) {
        (self.pages, self.report, self.read) = (pages, report, read)
    }

    /// Returns the next element, or nil at the end and after a failure, which is reported.
    @inlinable
    mutating func next() -> Element? {
        while position == page.count { if !turnPage() { return nil } }
        position += 1
        return page[position - 1]
    }

    /// Reads the next page, and returns false at the end.
    @usableFromInline
    mutating func turnPage() -> Bool {
        do throws(CacheError) {
            try readPage()
        } catch {
            pages = nil
            report(error)
        }
        return pages != nil || !page.isEmpty
    }

    /// Returns the next page as a whole; nil at the end.
    mutating func nextPage() throws(CacheError) -> [Element]? {
        if pages == nil { return nil }
        try readPage()
        return page
    }

    private mutating func readPage() throws(CacheError) {
        (page, position) = ([], 0)
        guard var rest = pages else { return }
        page = try read(&rest)
        pages = rest.isDone ? nil : rest
    }
}

extension Cache {
    /// Returns an iteration over rows that may be served.
    ///
    /// Which ones have expired is decided once for each page.
    @usableFromInline
    func rowIteration(_ pages: RowPages = RowPages()) -> PagedIteration<StoredRow> {
        PagedIteration(pages, report: reportEndedIteration) { [self] pages throws(CacheError) in
            let page = try throwing("read entries") { () throws(StoreError) in try pages.nextRows(of: rows) }
            let now = rows.store.time.now()
            return page.contains { $0.header.end < now } ? page.filter { $0.header.end >= now } : page
        }
    }

    /// Returns the key and the value of a row; nil if one of them does not decode, which is reported.
    @inlinable
    func decoded(_ row: StoredRow) -> (key: Key, value: Value)? {
        guard let key = key(of: row.header), let value = valueOrReported(of: row) else { return nil }
        return (key, value)
    }

    /// Returns the key of a row; nil if it does not decode, which is reported.
    @inlinable
    func key(of header: EntryHeader) -> Key? {
        do throws(CacheError) {
            return try core.keyCodec.key(header.key, cache: name)
        } catch {
            noteUndecodable(header, error)
            return nil
        }
    }

    /// Returns the value of a row; nil if it does not decode, which is reported.
    @inlinable
    func valueOrReported(of row: StoredRow) -> Value? {
        do throws(CacheError) { return try decode(row) } catch { return nil }
    }

    /// Reports an iteration that ended early, which cannot throw.
    @usableFromInline
    func reportEndedIteration(_ error: CacheError) {
        copies.count { $0.failures += 1 }
        let message = "An iteration over the cache \"\(name)\" ended early. \(error.message)"
        reportUnthrown(error, CacheEvent(.readFailed, cacheName: name, message: message))
    }
}

extension CacheEntry {
    /// The entry of a row.
    init(_ key: Key, _ value: Value, _ header: EntryHeader, isExpired: Bool = false) {
        self.init(
            key: key, value: value, extendedData: header.meta.extendedData, metadata: EntryMetadata(header),
            isExpired: isExpired)
    }
}

/// The pages that an iteration reads, in the order of keys or of a list.
@usableFromInline
struct RowPages: Sendable {
    private let range: KeyRange
    private let withAccess: Bool
    private var list: (rows: RowList, position: Int)?
    private var last: PagePosition?
    private(set) var isDone = false
    /// The greatest number of rows of the next page.
    private var limit: Int

    @usableFromInline init() { self.init(withAccess: false) }

    /// - Parameters:
    ///   - list: The order; nil for that of keys.
    ///   - limit: The greatest number of rows that are wanted.
    ///   - withAccess: A Boolean value that indicates whether last accesses are looked up for all rows.
    init(_ range: KeyRange = KeyRange(), _ list: RowList? = nil, limit: Int = .max, withAccess: Bool) {
        (self.range, self.withAccess) = (range, withAccess)
        self.list = list.map { ($0, 0) }
        self.limit = max(1, min(limit, 16))
    }

    /// Reads the next page of rows.
    mutating func nextRows(of rows: CacheRows) throws(StoreError) -> [StoredRow] {
        defer { limit = CacheRows.pageLimit }
        guard let (list, position) = list else {
            return advance(to: try rows.rows(range, after: last, limit: limit, withAccess: withAccess))
        }
        let page = try rows.rows(list, position..<min(list.count, position + limit))
        self.list = (list, page.end)
        isDone = page.end == list.count
        return page.rows
    }

    /// Reads the next page of headers, without the payloads.
    mutating func nextHeaders(of rows: CacheRows) throws(StoreError) -> [EntryHeader] {
        advance(to: try rows.headers(range, after: last, withAccess: withAccess))
    }

    /// Reads the next page of keys alone.
    mutating func nextKeys(of rows: CacheRows) throws(StoreError) -> [StoredKey] {
        advance(to: try rows.keys(range, after: last, limit: 4 * CacheRows.pageLimit))
    }

    private mutating func advance<Row>(to page: Page<Row>) -> [Row] {
        (last, isDone) = (page.next, page.next == nil)
        return page.rows
    }
}
