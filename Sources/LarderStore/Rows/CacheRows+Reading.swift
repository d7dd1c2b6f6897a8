package import LarderSQLite

/// Reading: over a connection of the readers, or in memory over the writer's.
///
/// No call waits for a running transaction, but in memory each waits, and throws `.reentrant` inside one.
extension CacheRows {
    /// Returns the entry of a key, expired or not; nil if there is none or its row is damaged.
    package func row(_ key: StoredKey) throws(StoreError) -> StoredRow? {
        try read { connection, generation throws(SQLiteError) in try connection.row(key, in: generation.id) }
    }

    /// Returns the facts of an entry without reading its payload.
    package func facts(_ key: StoredKey) throws(StoreError) -> RowFacts? {
        try read { connection, generation throws(SQLiteError) in try connection.find(key, in: generation.id)?.facts }
    }

    /// Returns the entries of keys at one moment, in the order of the keys, without those that are missing.
    package func rows(_ keys: [StoredKey]) throws(StoreError) -> [KeyedRow] {
        try read(isSnapshot: true) { connection, generation throws(SQLiteError) in
            var rows: [KeyedRow] = []
            for key in keys {
                if let row = try connection.row(key, in: generation.id) { rows.append(KeyedRow(key: key, row: row)) }
            }
            return rows
        } ?? []
    }

    // MARK: Iterating

    /// The number of rows of a page.
    package static let pageLimit = 256

    /// Returns the page of keys after a key, or the first page, without reading the rows.
    package func keys(
        _ range: KeyRange = KeyRange(), after last: StoredKey? = nil, limit: Int = pageLimit
    ) throws(StoreError) -> Page<StoredKey> {
        try read(isSnapshot: true) { connection, generation throws(SQLiteError) in
            try connection.page(SQL.keyPages, keyColumn: 0, range, after: last, limit, in: generation.id) { key, _ in
                key
            }
        } ?? Page()
    }

    /// Returns the page of facts after a key, or the first page, without reading the payloads.
    package func facts(
        _ range: KeyRange = KeyRange(), after last: StoredKey? = nil, limit: Int = pageLimit
    ) throws(StoreError) -> Page<KeyedFacts> {
        try read(isSnapshot: true) { connection, generation throws(SQLiteError) in
            try connection.page(SQL.factPages, keyColumn: 8, range, after: last, limit, in: generation.id) {
                KeyedFacts(key: $0, facts: $1.facts())
            }
        } ?? Page()
    }

    /// Returns the page of entries after a key, or the first page.
    package func rows(
        _ range: KeyRange = KeyRange(), after last: StoredKey? = nil, limit: Int = pageLimit
    ) throws(StoreError) -> Page<KeyedRow> {
        try read(isSnapshot: true) { connection, generation throws(SQLiteError) in
            try connection.page(SQL.rowPages, keyColumn: 9, range, after: last, limit, in: generation.id) { key, row in
                row.storedRow(key, in: generation.id).map { KeyedRow(key: key, row: $0) }
            }
        } ?? Page()
    }

    /// Lists the entries in an order that no index has.
    package func list(_ order: RowOrder, isDescending: Bool = false) throws(StoreError) -> RowList {
        try read(isSnapshot: true) { connection, generation throws(SQLiteError) in
            try connection.list(order, isDescending: isDescending, in: generation.id)
        } ?? RowList()
    }

    /// Returns the entries at places of a list that are still there.
    ///
    /// Each listed key comes once at most, though rows are written and removed in the meantime.
    package func rows(_ list: RowList, _ places: Range<Int>) throws(StoreError) -> [KeyedRow] {
        try read(isSnapshot: true) { connection, generation throws(SQLiteError) in
            try connection.rows(list, places, in: generation.id)
        } ?? []
    }

    // MARK: Counting

    /// Returns the number of rows and their bytes, expired ones included.
    package func totals() throws(StoreError) -> Totals {
        if let known = store.knownTotals.totals(of: declaration, in: store.watch.epoch()) { return known }
        if let counted = try store.writer.tryRead({ try $0.publishTotals(of: declaration) }) {
            return counted ?? Totals()
        }
        return try read(isSnapshot: true) { connection, generation throws(SQLiteError) in
            try connection.totals(of: generation.id)
        } ?? Totals()
    }

    /// Returns whether no live cache has the declaration.
    package func isSuperseded() throws(StoreError) -> Bool {
        try read { _, _ throws(SQLiteError) in true } == nil
    }

    /// Runs `body` with a connection and the live generation, or returns nil if the handle is superseded.
    package func read<R: Sendable>(
        isSnapshot: Bool = false, _ body: @Sendable (inout Connection, Generation) throws(SQLiteError) -> R?
    ) throws(StoreError) -> R? {
        guard let readers = store.readers else { return try store.writer.read { try $0.read(self.declaration, body) } }
        return try readers.read(self, over: store.writer, isSnapshot: isSnapshot, body)
    }
}
