internal import Foundation
package import LarderSQLite

extension Connection {
    /// Returns the row of a key; nil if there is none.
    ///
    /// The payload of a value file is missing.
    package mutating func row(_ key: StoredKey, in cache: Incarnation, _ accesses: AccessBook) throws(SQLiteError)
        -> StoredRow?
    {
        let found = try with(.readRow) { row throws(SQLiteError) in
            try row.bind(cache.id, at: 1)
            try row.bind(key, at: 2)
            return try row.step() ? row.storedRow(key, in: cache) : nil
        }
        guard var found else { return nil }
        try addAccess(to: &found.header, accesses)
        return found
    }

    /// Returns the row of a key if it is a plain one; else puts it into `other` if there is one.
    mutating func plainRow(
        _ key: StoredKey, in cache: Incarnation, _ accesses: AccessBook, orElse other: inout StoredRow?
    ) throws(SQLiteError) -> PlainRow? {
        let plain = try with(.readRow) { row throws(SQLiteError) -> PlainRow? in
            try row.bind(cache.id, at: 1)
            try row.bind(key, at: 2)
            guard try row.step() else { return nil }
            if let plain = row.plainRow(key, in: cache) { return plain }
            other = row.storedRow(key, in: cache)
            return nil
        }
        if plain == nil, var row = other {
            try addAccess(to: &row.header, accesses)
            other = row
        }
        return plain
    }

    /// Returns the header of a row, which no checksum protects, and its checksum.
    mutating func find(
        _ key: StoredKey, in cache: Incarnation, _ accesses: AccessBook
    ) throws(SQLiteError) -> (header: EntryHeader, checksum: Int64)? {
        let found = try with(.findRow) { row throws(SQLiteError) in
            try row.bind(cache.id, at: 1)
            try row.bind(key, at: 2)
            return try row.step() ? (header: row.header(key, by: cache.rule), checksum: row.int64(7)) : nil
        }
        guard var found else { return nil }
        try addAccess(to: &found.header, accesses)
        return found
    }

    /// Looks up the last access of an entry that slides, or of any.
    mutating func addAccess(
        to header: inout EntryHeader, _ accesses: AccessBook, always: Bool = false
    ) throws(SQLiteError) {
        guard always || header.slidingAge != nil else { return }
        let (stored, noted) = (try number(.lastAccess, header.id), accesses.lastAccess(header.id, header.revision))
        header.note(accessAt: max(stored ?? .min, noted ?? .min))
    }

    /// Returns the header of a row by its id, and the id of its incarnation.
    ///
    /// Their end is that of the entry alone.
    mutating func header(_ id: Int64) throws(SQLiteError) -> (header: EntryHeader, incarnation: Int64)? {
        try with(.headerByID) { row throws(SQLiteError) in
            try row.bind(id, at: 1)
            return try row.step() ? (row.header(row.key(8), by: .unlimited), row.int64(9)) : nil
        }
    }

    /// Throws if the row that an index has shown for a key is that of another one, because the index is damaged.
    mutating func requireKey(of header: EntryHeader) throws(SQLiteError) {
        guard let row = try self.header(header.id)?.header, row.revision == header.revision else { return }
        if row.key != header.key { throw SQLiteError.damagedIndex }
    }

    /// Throws if the last statement has not found the row of the key for which an index has shown it.
    func requireChange() throws(SQLiteError) { if changes == 0 { throw SQLiteError.damagedIndex } }

    /// Runs a statement whose parameters are a text and numbers, or numbers alone.
    mutating func run(_ sql: SQL, text: String? = nil, _ numbers: Int64?...) throws(SQLiteError) {
        try run(sql) { row throws(SQLiteError) in try row.bind(text: text, numbers) }
    }

    mutating func number(_ sql: SQL, text: String? = nil, _ numbers: Int64?...) throws(SQLiteError) -> Int64? {
        try with(sql) { row throws(SQLiteError) in
            try row.bind(text: text, numbers)
            return try row.step() ? row.number(0) : nil
        }
    }

    mutating func list<R>(
        _ sql: SQL, text: String? = nil, _ numbers: Int64?..., row body: (borrowing Statement) -> R
    ) throws(SQLiteError) -> [R] {
        try with(sql) { row throws(SQLiteError) in
            try row.bind(text: text, numbers)
            var found: [R] = []
            while try row.step() { found.append(body(row)) }
            return found
        }
    }

    /// Returns the live incarnations.
    ///
    /// Throws if the schema is of another release, and if a row is damaged.
    mutating func liveIncarnations() throws(SQLiteError) -> LiveIncarnations {
        try Schema.check(&self)
        var found = LiveIncarnations()
        try readIncarnations(.incarnations) { row throws(SQLiteError) in
            if !row.isSound {
                throw SQLiteError(code: .corrupt, message: "the row of a cache does not fit its checksum")
            }
            if row.state == 0 { found[row.incarnation.cache.identity.name] = row.incarnation.withoutNonsense }
        }
        return found
    }

    /// Returns another version of a cache under which a key was written that waits to be deleted; nil if there is none.
    mutating func retiredVersion(of key: StoredKey, besides cache: CacheDeclaration) throws(SQLiteError) -> String? {
        try with(.retiredVersion) { row throws(SQLiteError) in
            try row.bind(key, at: 1)
            try row.bind(cache.name, at: 2)
            try row.bind(cache.version, at: 3)
            try row.bind(cache.codec, at: 4)
            return try row.step() ? row.text(0) : nil
        }
    }

    /// Reads the rows of the table `cache`, or those of its second copy.
    mutating func readIncarnations(
        _ sql: SQL, _ body: (IncarnationRow) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        try with(sql) { row throws(SQLiteError) in
            while try row.step() {
                let keyKind = row.number(11).flatMap(KeyKind.init)
                let cache = CacheDeclaration(
                    name: row.text(1), version: row.text(2), codec: row.text(3),
                    ageRule: AgeRule(kind: row.int64(4), milliseconds: row.int64(5)), keyKind: keyKind)
                let incarnation = Incarnation(
                    id: row.int64(0), cache: cache, limits: Limits(count: row.number(6), size: row.number(7)),
                    keepsExpired: row.int64(8))
                try body(
                    IncarnationRow(
                        incarnation: incarnation, state: row.int64(9), checksum: row.int64(10), openedAt: row.int64(12))
                )
            }
        }
    }

    /// Inserts or updates the row of an incarnation.
    mutating func save(_ incarnation: Incarnation, state: Int64, openedAt: Int64, _ sql: SQL) throws(SQLiteError) {
        let (cache, rule) = (incarnation.cache, incarnation.rule.stored)
        try run(sql) { row throws(SQLiteError) in
            try row.bind(incarnation.id, at: 1)
            try row.bind(cache.name, at: 2)
            try row.bind(cache.version, at: 3)
            try row.bind(cache.codec, at: 4)
            try row.bind(rule.kind, at: 5)
            try row.bind(rule.milliseconds, at: 6)
            if let limit = incarnation.limits.count { try row.bind(limit, at: 7) }
            if let limit = incarnation.limits.size { try row.bind(limit, at: 8) }
            try row.bind(incarnation.keepsExpired, at: 9)
            try row.bind(state, at: 10)
            try row.bind(incarnation.checksum(state: state), at: 11)
            if let kind = cache.keyKind { try row.bind(kind.rawValue, at: 12) }
            try row.bind(openedAt, at: 13)
        }
    }

    /// Writes the checksums of all incarnations.
    mutating func sealIncarnations() throws(SQLiteError) {
        var rows: [IncarnationRow] = []
        try readIncarnations(.incarnations) { rows.append($0) }
        for row in rows { try run(.sealIncarnation, row.incarnation.id, row.incarnation.checksum(state: row.state)) }
    }

    /// Returns the limits of the store.
    mutating func storeLimits() throws(SQLiteError) -> StoreLimits {
        try with(.storeLimits) { row throws(SQLiteError) in
            guard try row.step() else { return StoreLimits() }
            return StoreLimits(size: row.number(0)?.asLimit, freeSpace: row.number(1)?.asLimit)
        }
    }

    /// Counts the rows of a cache and their bytes, expired ones included.
    mutating func count(of cache: Incarnation, _ accesses: AccessBook) throws(SQLiteError) -> RowCount {
        var count = RowCount()
        let slides = cache.rule.slidingAge != nil
        try with(slides ? .countPlainRows : .countSteadyRows) { row throws(SQLiteError) in
            try row.bind(cache.id, at: 1)
            guard try row.step(), row.int64(0) > 0 else { return }
            count.totals = Totals(count: row.int64(0), size: row.int64(1))
            if let end = row.number(2) { count.note(end: end) }
            guard let written = row.number(3), let accessed = slides ? row.number(4) : written else { return }
            // That of no id is the latest one.
            if case .jittered = cache.rule { return }
            count.note(end: cache.rule.end(writtenAt: written, accessedAt: accessed, id: 0))
        }
        if case .jittered = cache.rule {
            // Those that an access moves are counted below.
            let headers = try list(.agesOfRows, cache.id, row: { $0.header(.integer(0), by: cache.rule) })
            for header in headers where header.slidingAge == nil { count.note(end: header.end) }
        }
        for var header in try list(.otherRows, cache.id, row: { $0.header(.integer(0), by: cache.rule) }) {
            count.totals += Totals(count: 1, size: header.size)
            try addAccess(to: &header, accesses)
            count.note(end: header.end)
        }
        return count
    }

    /// Counts the entries of a cache that have not expired.
    mutating func count(at now: Int64, in cache: Incarnation, _ accesses: AccessBook) throws(SQLiteError) -> Int64 {
        var (count, sliding) = (Int64(0), [EntryHeader]())
        try with(.agesOfRows) { row throws(SQLiteError) in
            try row.bind(cache.id, at: 1)
            while try row.step() {
                let header = row.header(.integer(0), by: cache.rule)
                if header.end >= now { count += 1 } else if header.slidingAge != nil { sliding.append(header) }
            }
        }
        for var header in sliding {
            try addAccess(to: &header, accesses)
            if header.end >= now { count += 1 }
        }
        return count
    }
}

extension Statement {
    func bind(text: String? = nil, _ numbers: [Int64?]) throws(SQLiteError) {
        if let text { try bind(text, at: 1) }
        for (index, number) in zip(Int32(text == nil ? 1 : 2)..., numbers) {
            if let number { try bind(number, at: index) }
        }
    }
}

/// The columns of a row, in the order of ``SQL``'s `header`.
extension Statement {
    /// The header of a row.
    ///
    /// Damaged attributes count as none, and do not fit the checksum.
    func header(_ key: StoredKey, by rule: AgeRule) -> EntryHeader {
        header(key, by: rule, packedMeta, file, payloadSize: size(4))
    }

    private func header(
        _ key: StoredKey, by rule: AgeRule, _ meta: Data?, _ file: String?, payloadSize: Int64
    ) -> EntryHeader {
        EntryHeader(
            key: key, id: int64(0), revision: int64(1), writtenAt: int64(2), expiresAt: number(3),
            payloadSize: payloadSize, file: file, meta: RowMeta(packed: meta) ?? RowMeta(), rule: rule)
    }

    /// The header and the payload of a row, and whether they fit its checksum.
    ///
    /// The payload of a value file is missing.
    func storedRow(_ key: StoredKey, in cache: Incarnation) -> StoredRow {
        let (meta, file) = (packedMeta, file)
        let payload = file == nil ? data(8) : Data()
        let payloadSize = file == nil ? Int64(payload.count) : size(4)
        let header = header(key, by: cache.rule, meta, file, payloadSize: payloadSize)
        let columns = RowChecksum.ofColumns(
            cache: cache.id, key: key, writtenAt: header.writtenAt, expiresAt: header.expiresAt, meta: meta)
        let checksum = int64(7) ^ columns
        if file != nil { return StoredRow(header: header, payload: payload, fileChecksum: checksum) }
        return StoredRow(header: header, payload: payload, isSound: checksum == RowChecksum.ofPayload(payload))
    }

    /// The row, if it is a plain one and fits its checksum.
    func plainRow(_ key: StoredKey, in cache: Incarnation) -> PlainRow? {
        guard type(of: 6) == .null, type(of: 5) == .null, cache.rule.slidingAge == nil else { return nil }
        let (writtenAt, expiresAt) = (int64(2), number(3))
        let columns = RowChecksum.ofColumns(
            cache: cache.id, key: key, writtenAt: writtenAt, expiresAt: expiresAt, meta: nil)
        let checksum = int64(7) ^ columns
        return withBytes(8) { bytes in
            guard Int64(bitPattern: Checksum.of(bytes)) == checksum else { return nil }
            return PlainRow(
                payload: Data(bytes), id: int64(0), revision: int64(1), writtenAt: writtenAt,
                end: expiresAt
                    ?? cache.rule.end(writtenAt: writtenAt, accessedAt: writtenAt, id: int64(0)))
        }
    }

    /// A size, which no checksum covers: of a damaged row it is within what can be added up.
    func size(_ column: Int32) -> Int64 { min(max(int64(column), 0), 1 << 40) }

    func number(_ column: Int32) -> Int64? { type(of: column) == .null ? nil : int64(column) }

    private var file: String? { type(of: 5) == .null ? nil : text(5) }
    private var packedMeta: Data? { type(of: 6) == .null ? nil : data(6) }
}

/// The rows that one read returns of a longer iteration.
package struct Page<Row: Sendable>: Sendable {
    package var rows: [Row] = []
    /// Where the next page begins; nil after the last page.
    package var next: PagePosition?
}

/// The place after a page of an iteration.
package struct PagePosition: Hashable, Sendable {
    /// The last key of the page.
    let key: StoredKey
    /// The highest id when the iteration began.
    ///
    /// Rows with higher ids are left out, so the iteration ends although entries are added ahead of it.
    let highestID: Int64
}

/// The bytes of payloads after which a page ends.
let pageBytes: Int64 = 1 << 20

extension Connection {
    /// Reads a page in the order of keys, and returns where the next one begins.
    ///
    /// - Parameters:
    ///   - statements: One for each `KeyRange.Start`.
    ///   - body: Takes a row, and returns the bytes of its payload.
    mutating func page(
        _ statements: [SQL], keyColumn: Int32, _ range: KeyRange, after last: PagePosition?, _ limit: Int,
        in cache: Incarnation,
        _ body: (StoredKey, borrowing Statement) -> Int64
    ) throws(SQLiteError) -> PagePosition? {
        let highestID = try number(.highestID) ?? .min
        let newest = last?.highestID ?? highestID
        let (start, bound) = range.start(after: last?.key)
        return try with(statements[start.rawValue]) { row throws(SQLiteError) in
            try row.bind(cache.id, at: 1)
            try row.bind(Int64(limit), at: 2)
            switch bound {
            case .none: break
            case .key(let key): try row.bind(key, at: 3)
            case .bytes(let bytes): try row.bind(textBytes: bytes, at: 3)
            }
            var (count, bytes, next): (Int, Int64, StoredKey?) = (0, 0, nil)
            while next == nil, try row.step() {
                let key = row.key(keyColumn)
                guard range.contains(key) else { return nil }
                if row.int64(0) <= newest { bytes += body(key, row) }
                count += 1
                if count == limit || bytes >= pageBytes { next = key }
            }
            // A damaged index could repeat keys without end.
            if let last, let next, !range.isBeyond(last.key, next) { throw SQLiteError.damagedOrder }
            return next.map { PagePosition(key: $0, highestID: newest) }
        }
    }
}

extension Statement {
    func key(_ column: Int32) -> StoredKey {
        switch type(of: column) {
        case .integer: .integer(int64(column))
        case .text: .text(text(column))
        default: .blob(data(column))
        }
    }
}

extension SQLiteError {
    static let damagedIndex = SQLiteError(code: .corrupt, message: "an index leads to the row of another key")
    static let damagedOrder = SQLiteError(code: .corrupt, message: "rows are not in the order of their keys")
}

extension Connection {
    /// Returns unpinned rows of a cache, or of all, in the order of use, with a row that is to be kept at the end.
    ///
    /// - Parameter noted: The accesses that are not stored yet: they count too, and can move as many rows back.
    mutating func leastRecentlyUsed(
        of cache: Incarnation?, isByKey: Bool, atMost count: Int, _ noted: [Int64: Int64], _ kept: Int64?
    ) throws(SQLiteError) -> [Eviction.Victim] {
        let sql = isByKey ? SQL.leastRecentlyUsedByKey : .leastRecentlyUsed
        var rows = try list(sql, Int64(count + noted.count + 1), cache?.id) { row -> Eviction.Victim in
            let header = row.header(row.key(8), by: .unlimited)
            let lastUse = max(row.int64(10), noted[header.id].map(Access.order) ?? .min)
            return Eviction.Victim(
                row: header, cache: row.int64(9), lastUse: header.id == kept ? .max : lastUse,
                isStamped: row.int64(11) != 0)
        }
        rows.sort { ($0.lastUse, $0.row.id) < ($1.lastUse, $1.row.id) }
        return Array(rows.prefix(count))
    }
}
