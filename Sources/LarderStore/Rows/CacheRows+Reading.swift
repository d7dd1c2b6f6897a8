package import LarderSQLite

/// Reading: over a connection of the readers, or in memory over the writer's.
///
/// No call waits for a running transaction, but in memory each waits, and throws `.reentrant` inside one.
extension CacheRows {
    /// Returns the entry of a key, expired or not; nil if there is none or its row is damaged.
    package func row(_ key: StoredKey) throws(StoreError) -> StoredRow? {
        var found: StoredRow?
        try read { connection, cache throws(SQLiteError) in found = try connection.row(key, in: cache) }
        return found
    }

    /// Returns the facts of an entry without reading its payload.
    package func facts(_ key: StoredKey) throws(StoreError) -> RowFacts? {
        var found: RowFacts?
        try read { connection, cache throws(SQLiteError) in found = try connection.find(key, in: cache)?.facts }
        return found
    }

    /// Returns the entries of keys at one moment, in the order of the keys, without those that are missing.
    package func rows(_ keys: [StoredKey]) throws(StoreError) -> [StoredRow] {
        var found: [StoredRow] = []
        try read(isSnapshot: true) { connection, cache throws(SQLiteError) in
            for key in keys {
                if let row = try connection.row(key, in: cache) { found.append(row) }
            }
        }
        return found
    }

    // MARK: Iterating

    /// The number of rows of a page.
    package static let pageLimit = 256

    /// Returns the page of keys after a key, or the first page, without reading the rows.
    package func keys(
        _ range: KeyRange = KeyRange(), after last: StoredKey? = nil, limit: Int = pageLimit
    ) throws(StoreError) -> Page<StoredKey> {
        var page = Page<StoredKey>()
        try read(isSnapshot: true) { connection, cache throws(SQLiteError) in
            page.next = try connection.page(SQL.keyPages, keyColumn: 0, range, after: last, limit, in: cache) {
                key, _ in
                page.rows.append(key)
            }
        }
        return page
    }

    /// Returns the page of facts after a key, or the first page, without reading the payloads.
    package func facts(
        _ range: KeyRange = KeyRange(), after last: StoredKey? = nil, limit: Int = pageLimit
    ) throws(StoreError) -> Page<RowFacts> {
        var page = Page<RowFacts>()
        try read(isSnapshot: true) { connection, cache throws(SQLiteError) in
            page.next = try connection.page(SQL.factPages, keyColumn: 8, range, after: last, limit, in: cache) {
                page.rows.append($1.facts($0))
            }
        }
        return page
    }

    /// Returns the page of entries after a key, or the first page, without those whose row is damaged.
    package func rows(
        _ range: KeyRange = KeyRange(), after last: StoredKey? = nil, limit: Int = pageLimit
    ) throws(StoreError) -> Page<StoredRow> {
        var page = Page<StoredRow>()
        try read(isSnapshot: true) { connection, cache throws(SQLiteError) in
            page.next = try connection.page(SQL.rowPages, keyColumn: 9, range, after: last, limit, in: cache) {
                if let row = $1.storedRow($0, in: cache) { page.rows.append(row) }
            }
        }
        return page
    }

    /// Lists the entries in an order that no index has.
    package func list(_ order: RowOrder, isDescending: Bool = false) throws(StoreError) -> RowList {
        var list = RowList()
        try read(isSnapshot: true) { connection, cache throws(SQLiteError) in
            list = try connection.list(order, isDescending: isDescending, in: cache)
        }
        return list
    }

    /// Returns the entries at places of a list that are still there.
    ///
    /// Each listed key comes once at most, though rows are written and removed in the meantime.
    package func rows(_ list: RowList, _ places: Range<Int>) throws(StoreError) -> [StoredRow] {
        var found: [StoredRow] = []
        try read(isSnapshot: true) { connection, cache throws(SQLiteError) in
            found = try connection.rows(list, places, in: cache)
        }
        return found
    }

    // MARK: Counting

    /// Returns the number of rows and their bytes, expired ones included.
    ///
    /// The writer knows them. While it works they are counted.
    package func totals() throws(StoreError) -> Totals {
        if let known = try store.writer.tryRead({ try $0.totals(of: declaration) }) ?? nil { return known }
        var totals = Totals()
        try read(isSnapshot: true) { connection, cache throws(SQLiteError) in
            totals = try connection.totals(of: cache)
        }
        return totals
    }

    /// Returns whether no live cache has the declaration.
    package func isSuperseded() throws(StoreError) -> Bool { try !read { _, _ throws(SQLiteError) in } }

    /// Runs `body` with a connection and the id of the live generation, or returns false if the handle is superseded.
    @discardableResult
    package func read(
        isSnapshot: Bool = false, _ body: (inout Connection, Int64) throws(SQLiteError) -> Void
    ) throws(StoreError) -> Bool {
        guard let readers = store.readers else {
            return try store.writer.read { try $0.read(declaration, body) } ?? false
        }
        return try readers.read(declaration, over: store.writer, isSnapshot: isSnapshot, body)
    }
}
