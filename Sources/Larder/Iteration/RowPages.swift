internal import LarderStore

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
            return take(try rows.rows(range, after: last, limit: limit, withAccess: withAccess))
        }
        let page = try rows.rows(list, position..<min(list.count, position + limit))
        self.list = (list, page.end)
        isDone = page.end == list.count
        return page.rows
    }

    /// Reads the next page of headers, without the payloads.
    mutating func nextHeaders(of rows: CacheRows) throws(StoreError) -> [EntryHeader] {
        take(try rows.headers(range, after: last, withAccess: withAccess))
    }

    /// Reads the next page of keys alone.
    mutating func nextKeys(of rows: CacheRows) throws(StoreError) -> [StoredKey] {
        take(try rows.keys(range, after: last, limit: 4 * CacheRows.pageLimit))
    }

    private mutating func take<Row>(_ page: Page<Row>) -> [Row] {
        (last, isDone) = (page.next, page.next == nil)
        return page.rows
    }
}
