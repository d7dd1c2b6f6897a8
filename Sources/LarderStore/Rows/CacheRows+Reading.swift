package import LarderSQLite

/// Reading: over a connection of the readers, or in memory over the writer's.
///
/// No call waits for a running transaction, but in memory each waits, and throws `.reentrant` inside one. Expired entries
/// are returned too, and the end of each says so.
extension CacheRows {
    /// Returns the entry of a key; nil if there is none or it is damaged.
    package func row(_ key: StoredKey) throws(StoreError) -> StoredRow? {
        var isCurrent = true
        return try row(key, &isCurrent)
    }

    /// Returns the entry of a key, and whether a live cache has the declaration.
    package func row(_ key: StoredKey, _ isCurrent: inout Bool) throws(StoreError) -> StoredRow? {
        var last: Int64?
        while true {
            var found: StoredRow?
            let isRead: Void? = try read { connection, cache throws(SQLiteError) in
                found = try connection.row(key, in: cache, store.accesses)
                if last != nil, let found { try connection.requireKey(of: found.header) }
            }
            isCurrent = isRead != nil
            guard let found else { return nil }
            if let row = try complete(found) { return row }
            // The file of an older row may be overwritten, and a damaged index may have led to another row.
            if found.header.revision == last { return discardDamaged(found.header) }
            last = found.header.revision
        }
    }

    /// Returns the entry of a key if its row is a plain one; else puts it into `other` if there is one that is not damaged.
    ///
    /// - Parameter moment: The time of the read.
    package func plainRow(
        _ key: StoredKey, at moment: Int64, orElse other: inout StoredRow?
    ) throws(StoreError) -> PlainRow? {
        var found: StoredRow?
        let plain = try read(at: moment) { connection, cache throws(SQLiteError) in
            found = nil
            return try connection.plainRow(key, in: cache, store.accesses, orElse: &found)
        }
        if let found {
            other = try complete(found)
            // Its file was overwritten, or it is damaged.
            if other == nil { other = try row(key) }
        }
        return plain ?? nil
    }

    /// What there is of a key.
    package enum Inspection: Sendable {
        case row(StoredRow)
        case damaged(EntryHeader)
        /// There is no row; the version under which a row was written that waits to be deleted.
        case absent(retiredVersion: String?)
        /// The handle is superseded; the version of the live cache of its name.
        case superseded(version: String?)
    }

    /// Returns what there is of a key, and changes and reports nothing.
    package func inspect(_ key: StoredKey) throws(StoreError) -> Inspection {
        var retired: String?
        let row = try read(.page, isQuiet: true) { connection, cache throws(SQLiteError) in
            let row = try connection.row(key, in: cache, store.accesses)
            if row == nil { retired = try connection.retiredVersion(of: key, besides: cache.cache) }
            return row
        }
        guard let found = row else {
            let live = try store.liveVersion(of: declaration.identity.name)
            // A store that is only read creates no cache.
            return store.isReadOnly && live == nil ? .absent(retiredVersion: nil) : .superseded(version: live)
        }
        guard let found else { return .absent(retiredVersion: retired) }
        return try complete(found).map { .row($0) } ?? .damaged(found.header)
    }

    /// Returns the header of an entry without reading its payload.
    ///
    /// - Parameter withAccess: A Boolean value that indicates whether the last access is looked up also if no end depends on it.
    package func header(_ key: StoredKey, withAccess: Bool = false) throws(StoreError) -> EntryHeader? {
        let found = try read { connection, cache throws(SQLiteError) -> EntryHeader? in
            guard var header = try connection.find(key, in: cache, store.accesses)?.header else { return nil }
            if withAccess { try connection.addAccess(to: &header, store.accesses, always: true) }
            return header
        }
        return found ?? nil
    }

    /// Returns the entries that have a tag at one moment, in no particular order, without those that are damaged.
    package func rows(tagged tag: String) throws(StoreError) -> [StoredRow] {
        try rowsOfOneMoment(tagged: tag) { connection, cache throws(SQLiteError) in
            var found: [StoredRow] = []
            for id in try connection.list(.taggedRows, text: tag, cache.id, row: { $0.int64(0) }) {
                if let row = try connection.listedRow(id, in: cache, store.accesses) { found.append(row) }
            }
            return found
        }
    }

    /// Returns the entries of keys at one moment, in the order of the keys, without those that are missing or damaged.
    package func rows(_ keys: [StoredKey]) throws(StoreError) -> [StoredRow] {
        try rowsOfOneMoment(keys.count > Self.pageLimit ? .many : .page) { connection, cache throws(SQLiteError) in
            var found: [StoredRow] = []
            for key in keys {
                if let row = try connection.row(key, in: cache, store.accesses) { found.append(row) }
            }
            return found
        }
    }

    /// Returns all entries at one moment, without those that are damaged.
    package func allRows() throws(StoreError) -> [StoredRow] {
        try rowsOfOneMoment { connection, cache throws(SQLiteError) in
            var (found, last) = ([StoredRow](), PagePosition?.none)
            repeat {
                last = try connection.page(
                    SQL.rowPages, keyColumn: 9, KeyRange(), after: last, Self.pageLimit, in: cache
                ) {
                    found.append($1.storedRow($0, in: cache))
                    return 0
                }
            } while last != nil
            for index in found.indices { try connection.addAccess(to: &found[index].header, store.accesses) }
            return found
        }
    }

    /// Returns rows with their payloads, as they were at one moment.
    ///
    /// The file of an older row may be overwritten before it is read. Then all rows are read at a later moment, up to twenty
    /// times. After that the rows without a file are read alone, each at a moment of its own.
    ///
    /// - Parameter tag: The tag that a row must have that is read alone.
    func rowsOfOneMoment(
        _ size: ReadSize = .many, tagged tag: String? = nil,
        _ body: (inout Connection, Incarnation) throws(SQLiteError) -> [StoredRow]
    ) throws(StoreError) -> [StoredRow] {
        var (unreadable, attempt) = (Set<Int64>(), 0)
        while true {
            attempt += 1
            let found = try read(size, body) ?? []
            var (rows, isCurrent) = ([StoredRow](), true)
            for row in found {
                if let row = try complete(row) {
                    rows.append(row)
                } else if unreadable.insert(row.header.revision).inserted && attempt < Self.attemptsOfOneMoment {
                    isCurrent = false
                } else if let later = try self.row(row.header.key), tag.map(later.header.meta.tags.contains) ?? true {
                    rows.append(later)
                }
            }
            if isCurrent { return rows }
        }
    }

    private static let attemptsOfOneMoment = 20

    /// Returns the path of an entry's value file with the header of the entry; nil if there is none or its payload is in the
    /// row.
    ///
    /// The file is never overwritten then: a program that has it open goes on reading the old bytes.
    package func filePath(_ key: StoredKey) throws(StoreError) -> (path: String, header: EntryHeader)? {
        // No checksum would tell that a damaged index has led to the row of another key.
        try read { connection, cache throws(SQLiteError) in
            if let header = try connection.find(key, in: cache, store.accesses)?.header {
                try connection.requireKey(of: header)
            }
        }
        var header = try header(key)
        while let found = header, let file = found.file {
            let path = try store.files?.handOut(file)
            header = try self.header(key)
            // The file of an older row may be gone.
            if header?.file != file { continue }
            if path == nil { _ = discardDamaged(found) }
            return path.map { ($0, found) }
        }
        return nil
    }

    private func complete(_ row: StoredRow) throws(StoreError) -> StoredRow? {
        if row.header.file == nil { return row.isSound ? row : nil }
        return try store.files?.complete(row)
    }

    /// Reports an entry that does not fit its checksum, and deletes it in the background.
    private func discardDamaged(_ header: EntryHeader) -> StoredRow? {
        store.report(.damagedEntry(cache: declaration.name, key: header.key))
        removeLater(header, .damaged)
        return nil
    }

    /// Deletes an entry in the background, unless it was replaced.
    package func removeLater(_ header: EntryHeader, _ cause: RemovedRow.Cause = .undecodable) {
        if store.isReadOnly { return }
        store.writer.enqueue { [declaration] in try $0.removeDamaged(header, of: declaration, cause) }
    }

    /// Completes the rows of a page, each for itself.
    private func complete(_ rows: [StoredRow]) throws(StoreError) -> [StoredRow] {
        guard rows.contains(where: { $0.header.file != nil || !$0.isSound }) else { return rows }
        var completed: [StoredRow] = []
        for row in rows {
            if let whole = try complete(row) {
                completed.append(whole)
            } else if let later = try self.row(row.header.key) {
                completed.append(later)
            }
        }
        return completed
    }

    // MARK: Iterating

    /// The number of rows of a page.
    package static let pageLimit = 256

    /// Returns the page of keys after a position, or the first page, without reading the rows.
    package func keys(
        _ range: KeyRange = KeyRange(), after last: PagePosition? = nil, limit: Int = pageLimit
    ) throws(StoreError) -> Page<StoredKey> {
        try page(SQL.keyPages, keyColumn: 1, range, last, limit) { key, _, _ in (key, 0) }
    }

    /// Returns the page of headers after a position, or the first page, without reading the payloads.
    package func headers(
        _ range: KeyRange = KeyRange(), after last: PagePosition? = nil, limit: Int = pageLimit,
        withAccess: Bool = false
    ) throws(StoreError) -> Page<EntryHeader> {
        try page(SQL.headerPages, keyColumn: 8, range, last, limit) { key, row, cache in
            (row.header(key, by: cache.rule), 0)
        } then: { header, connection throws(SQLiteError) in
            try connection.addAccess(to: &header, store.accesses, always: withAccess)
        }
    }

    /// Returns the page of entries after a position, or the first page, without those that are damaged.
    package func rows(
        _ range: KeyRange = KeyRange(), after last: PagePosition? = nil, limit: Int = pageLimit,
        withAccess: Bool = false
    ) throws(StoreError) -> Page<StoredRow> {
        try rows(SQL.rowPages, range, last, limit, withAccess: withAccess)
    }

    /// Returns a page of the entries that the running migration has not taken in as they are now.
    func unmigratedRows(after last: PagePosition?, _ size: ReadSize) throws(StoreError) -> Page<StoredRow> {
        try rows(SQL.unmigratedPages, KeyRange(), last, Self.pageLimit, size, withAccess: true, isQuiet: true)
    }

    private func rows(
        _ statements: [SQL], _ range: KeyRange, _ last: PagePosition?, _ limit: Int,
        _ size: ReadSize = .page, withAccess: Bool, isQuiet: Bool = false
    ) throws(StoreError) -> Page<StoredRow> {
        var found = try page(statements, keyColumn: 9, range, last, limit, size, isQuiet: isQuiet) { key, row, cache in
            let row = row.storedRow(key, in: cache)
            return (row, row.header.payloadSize)
        } then: { row, connection throws(SQLiteError) in
            try connection.addAccess(to: &row.header, store.accesses, always: withAccess)
        }
        found.rows = try complete(found.rows)
        return found
    }

    /// Returns a page of what `body` makes of each row, with the bytes of its payload, and `then` adds to each after that.
    private func page<Row>(
        _ statements: [SQL], keyColumn: Int32, _ range: KeyRange, _ last: PagePosition?, _ limit: Int,
        _ size: ReadSize = .page, isQuiet: Bool = false,
        _ body: (StoredKey, borrowing Statement, Incarnation) -> (Row, Int64),
        then: (inout Row, inout Connection) throws(SQLiteError) -> Void = { _, _ in }
    ) throws(StoreError) -> Page<Row> {
        let page = try read(size, isQuiet: isQuiet) { connection, cache throws(SQLiteError) in
            var page = Page<Row>()
            page.rows.reserveCapacity(min(limit, Self.pageLimit))
            page.next = try connection.page(statements, keyColumn: keyColumn, range, after: last, limit, in: cache) {
                let (row, size) = body($0, $1, cache)
                page.rows.append(row)
                return size
            }
            for index in page.rows.indices { try then(&page.rows[index], &connection) }
            return page
        }
        return page ?? Page()
    }

    /// Returns the revisions of all entries, expired ones included; nil if there are more than a number.
    package func versions(atMost limit: Int) throws(StoreError) -> [(key: StoredKey, version: RowVersion)]? {
        let found = try read(.many) { connection, cache throws(SQLiteError) in
            try connection.with(.versions) { row throws(SQLiteError) in
                try row.bind(cache.id, at: 1)
                try row.bind(Int64(limit) + 1, at: 2)
                var found: [(StoredKey, RowVersion)] = []
                while try row.step() {
                    found.append((row.key(2), RowVersion(id: row.int64(0), revision: row.int64(1))))
                }
                return found
            }
        }
        guard let found else { throw .superseded }
        return found.count <= limit ? found : nil
    }

    /// Lists the entries in an order that no index has.
    package func list(_ order: RowOrder, _ range: KeyRange = KeyRange()) throws(StoreError) -> RowList {
        let list = try read(.many) { connection, cache throws(SQLiteError) in
            try connection.list(order, range, in: cache, store.accesses)
        }
        return list ?? RowList()
    }

    /// Returns the entries at places of a list that are still there, and the place at which the next page begins.
    ///
    /// Each listed key comes once at most, though rows are written and removed in the meantime.
    package func rows(_ list: RowList, _ places: Range<Int>) throws(StoreError) -> (rows: [StoredRow], end: Int) {
        let page = try read(.page) { connection, cache throws(SQLiteError) in
            try connection.rows(list, places, in: cache, store.accesses)
        }
        return (try complete(page?.rows ?? []), page?.end ?? list.count)
    }

    // MARK: Connections

    /// Returns whether no live cache has the declaration.
    package func isSuperseded() throws(StoreError) -> Bool { try read { _, _ throws(SQLiteError) in } == nil }

    /// Returns what `body` reads with a connection and the live incarnation; nil if the handle is superseded.
    ///
    /// - Parameters:
    ///   - isQuiet: Whether nothing is noted and reported of a superseded handle.
    ///   - moment: The time of the read, if it is known.
    @discardableResult
    package func read<R>(
        _ size: ReadSize = .row, isQuiet: Bool = false, at moment: Int64? = nil,
        _ body: (inout Connection, Incarnation) throws(SQLiteError) -> R
    ) throws(StoreError) -> R? {
        let found = try store.writer.retrying { () throws(StoreError) -> R? in
            if let readers = store.readers {
                return try readers.read(declaration, over: store.writer, size, at: moment, body)
            }
            try store.writer.requireResumed()
            return try store.writer.read { try $0.read(declaration, body) }
        }
        if !isQuiet { if found == nil { noteSuperseded() } else { noteCurrent() } }
        return found
    }
}

/// Headers of several entries, which are read at one moment and without the payloads.
extension CacheRows {
    /// Returns the headers of the entries that have a tag, in no particular order.
    package func headers(tagged tag: String) throws(StoreError) -> [EntryHeader] {
        var found: [EntryHeader] = []
        try forEachHeader(tagged: tag) { found.append($0) }
        return found
    }

    /// Returns the number of the entries that have a tag and have not expired when they are read.
    package func count(tagged tag: String, at now: () -> Int64) throws(StoreError) -> Int {
        var ends: [Int64] = []
        try forEachHeader(tagged: tag) { ends.append($0.end) }
        // The clock may be the program's, and may use the store.
        let now = now()
        return ends.count { $0 >= now }
    }

    private func forEachHeader(tagged tag: String, _ body: (EntryHeader) -> Void) throws(StoreError) {
        try read(.many) { connection, cache throws(SQLiteError) in
            let ids = try connection.list(.taggedRows, text: tag, cache.id) { $0.int64(0) }
            try connection.forEachHeader(ids, in: cache, store.accesses, body)
        }
    }

    /// Returns the headers of keys in their order, without those of keys that have no row.
    package func headers(_ keys: [StoredKey]) throws(StoreError) -> [EntryHeader] {
        let found = try read(keys.count > Self.pageLimit ? .many : .page) { connection, cache throws(SQLiteError) in
            var found: [EntryHeader] = []
            for key in keys {
                guard var header = try connection.find(key, in: cache, store.accesses)?.header else { continue }
                try connection.addAccess(to: &header, store.accesses, always: true)
                found.append(header)
            }
            return found
        }
        return found ?? []
    }

    /// Returns the headers of the entries at places of a list that are still there.
    package func headers(_ list: RowList, _ places: Range<Int>) throws(StoreError) -> [EntryHeader] {
        try read(.page) { connection, cache throws(SQLiteError) in
            try connection.headers(list, places, in: cache, store.accesses)
        } ?? []
    }

    /// Returns the tags of the entries that have not expired when they are read, with the number of entries of each.
    package func tags(at now: () -> Int64) throws(StoreError) -> [String: Int] {
        let found = try read(.many) { connection, cache throws(SQLiteError) in
            let pairs = try connection.list(.tagsOfCache, cache.id) { (tag: $0.text(0), id: $0.int64(1)) }
            var ends: [Int64: Int64] = [:]
            try connection.forEachHeader(Set(pairs.map(\.id)), in: cache, store.accesses) { ends[$0.id] = $0.end }
            return (pairs, ends)
        }
        guard let (pairs, ends) = found else { return [:] }
        // The clock may be the program's, and may use the store.
        let now = now()
        return pairs.reduce(into: [:]) { if let end = ends[$1.id], end >= now { $0[$1.tag, default: 0] += 1 } }
    }
}

extension Connection {
    /// Calls a closure with the headers of those rows of a cache that are there.
    mutating func forEachHeader(
        _ ids: some Sequence<Int64>, in cache: Incarnation, _ accesses: AccessBook, withAccess: Bool = false,
        _ body: (EntryHeader) -> Void
    ) throws(SQLiteError) {
        for id in ids {
            let header = try with(.listedHeader) { row throws(SQLiteError) in
                try row.bind(id, at: 1)
                try row.bind(cache.id, at: 2)
                return try row.step() ? row.header(row.key(8), by: cache.rule) : nil
            }
            guard var header else { continue }
            try addAccess(to: &header, accesses, always: withAccess)
            body(header)
        }
    }
}
