internal import Foundation
internal import LarderSQLite

/// Copies the rows that SQLite still reads of a damaged file to a new one, and renames the damaged one.
///
/// The copy is complete and on the disk before the damaged file is renamed. The next opening ends an exchange that was
/// interrupted. Called while the lock file is held.
struct Salvage {
    let file: StoreFile
    let deadline: Deadline

    private var copyPath: String { file.path + ".salvaged" }
    private var keptPath: String { file.path + ".damaged" }
    private static let logs = ["-wal", "-shm"]

    /// Replaces the file.
    ///
    /// - Parameter isReadable: A Boolean value that indicates whether its rows are copied.
    func run(isReadable: Bool = true) throws -> SalvageReport {
        let folder = FileSystem.folder(of: file.path)
        if try FileSystem.freeSpace(folder) < FileSystem.status(file.path)?.size ?? 0 { throw StoreError.full }
        let head = try FileHead(path: file.path)
        if head.hasSQLiteHeader && !head.hasKnownJournal { try Connection.declareLog(inFileAt: file.path) }
        var source = try DamagedFile(file, deadline)
        var rows = SalvagedRows()
        do {
            var copy = try makeCopy()
            if isReadable, var readable = source.connection.take() {
                try rows.copy(from: &readable, to: &copy)
                source.connection = consume readable
            }
            _ = consume copy
            try FileSystem.sync(copyPath)
            try FileSystem.sync(folder)
        } catch {
            try FileSystem.delete(copyPath)
            throw error
        }
        for log in Self.logs { try FileSystem.delete(keptPath + log) }
        try moveDamaged()
        source.commitMark()
        try moveCopy()
        return SalvageReport(kept: rows.kept, lost: rows.lost, path: keptPath)
    }

    func finish() throws {
        guard try FileSystem.status(copyPath) != nil else { return }
        if try FileSystem.status(file.path) != nil { return try FileSystem.delete(copyPath) }
        try moveDamaged()
        try moveCopy()
    }

    private func makeCopy() throws -> Connection {
        try FileSystem.delete(copyPath)
        try FileSystem.makeFile(copyPath)
        var copy = try Connection.open(.file(copyPath), .init(role: .writer, busyMilliseconds: 0))
        try copy.forgoJournal()
        guard try copy.claimEmptyDatabase(applicationID: Schema.applicationID) else { throw SQLiteError.moved }
        try Schema.migrate(&copy)
        return copy
    }

    /// Renames the damaged file and its log.
    private func moveDamaged() throws(FileError) {
        for part in [""] + Self.logs { _ = try FileSystem.rename(file.path + part, to: keptPath + part) }
        // Else the log could come back beside the copy after a loss of power.
        try FileSystem.sync(FileSystem.folder(of: file.path))
    }

    private func moveCopy() throws(FileError) {
        _ = try FileSystem.rename(copyPath, to: file.path)
        try FileSystem.sync(FileSystem.folder(of: file.path))
    }
}

/// A damaged file to which no other connection can write as long as this value lives.
private struct DamagedFile: ~Copyable {
    /// Nil if SQLite finds no database in the file.
    var connection: Connection?
    /// Holds the lock of a writer if no transaction can begin.
    private var lock: WritingLock?

    init(_ file: StoreFile, _ deadline: Deadline) throws {
        do throws(SQLiteError) {
            connection = try file.connect(.writer, deadline, readsCutFiles: true)
            try connection?.beginWriting()
            return
        } catch {
            if !error.isCorruption { throw error }
        }
        lock = try WritingLock(path: file.path)
        while try lock?.lock() == false { try deadline.pause() }
    }

    /// Commits, so that other processes look at the path and find another file there.
    mutating func commitMark() {
        guard connection?.isInAutocommit == false else { return }
        do {
            let version = try connection?.userVersion() ?? 0
            try connection?.setUserVersion(version)
            try connection?.finishWriting()
        } catch {}
    }
}

/// The rows of a damaged database.
struct SalvagedRows {
    private(set) var (kept, lost) = (0, 0)
    /// The incarnations by id, and whether each is live.
    private var caches: [Int64: Bool] = [:]
    /// The ids of rows that do not fit their checksum.
    private var damaged: Set<Int64> = []

    mutating func copy(from source: inout Connection, to copy: inout Connection) throws(SQLiteError) {
        try copy.beginWriting()
        try copyIncarnations(from: &source, &copy)
        try Self.readByID(.salvagedEntries, from: &source) { (entry) throws(SQLiteError) in try copyEntry(entry, &copy)
        }
        try readThroughIndex(from: &source, &copy)
        (kept, lost) = (Int(try copy.number(.countEntries) ?? 0), damaged.count)
        try Self.readByID(.salvagedUses, from: &source) { (use) throws(SQLiteError) in
            try Self.insert(use, .insertUse, &copy)
        }
        var others = [(SQL.storeLimits, SQL.setStoreLimits), (.salvagedActivity, .addActivity)]
        // An older file has none.
        try Self.reading { () throws(SQLiteError) in
            if try source.number(.hasNotes) != nil { others.append((.salvagedNotes, .setNote)) }
        }
        for (sql, insert) in others {
            try Self.read(sql, from: &source) { (row) throws(SQLiteError) in try Self.insert(row, insert, &copy) }
        }
        try copy.finishWriting()
    }

    /// Keeps the incarnations that fit their checksums in one of their two copies, or that are the same in both.
    private mutating func copyIncarnations(from source: inout Connection, _ copy: inout Connection) throws(SQLiteError)
    {
        var (found, crafted): ([IncarnationRow], [IncarnationRow]) = ([], [])
        for copies in SQL.salvagedIncarnations where found.isEmpty && crafted.isEmpty {
            for sql in copies {
                try Self.reading { () throws(SQLiteError) in
                    try source.readIncarnations(sql) { if $0.isSound { found.append($0) } else { crafted.append($0) } }
                }
            }
        }
        // What no damage to one page explains was written so.
        for (index, row) in crafted.enumerated()
        where crafted[..<index].contains(where: { $0.incarnation == row.incarnation && $0.state == row.state }) {
            found.append(row)
        }
        for row in found where caches[row.incarnation.id] == nil {
            if row.state != 0 {
                caches[row.incarnation.id] = false
            } else if try Self.isInserted({ () throws(SQLiteError) in
                try copy.save(row.incarnation, state: 0, openedAt: row.openedAt, .insertIncarnation)
            }) {
                caches[row.incarnation.id] = true
            }
        }
    }

    /// Keeps an entry of a live incarnation if it fits its checksum; a payload in a file is checked when it is read.
    private mutating func copyEntry(_ entry: [RawValue], _ copy: inout Connection) throws(SQLiteError) {
        guard let id = entry[0].number, let cache = entry[1].number, caches[cache] != false else { return }
        let meta = RowMeta(packed: entry[9].data)
        guard caches[cache] == true, 0 < id, id < 1 << 39, let meta, Self.isSound(entry) else {
            damaged.insert(id)
            return
        }
        guard try Self.insert(entry, .insertEntry, &copy), let revision = entry[3].number else { return }
        for tag in meta.tags { try copy.run(.insertTag, text: tag, cache, id, revision) }
    }

    private static func isSound(_ entry: [RawValue]) -> Bool {
        guard let cache = entry[1].number, let key = entry[2].key, let writtenAt = entry[4].number,
            let checksum = entry[6].number
        else { return false }
        let columns = RowChecksum.ofColumns(
            cache: cache, key: key, writtenAt: writtenAt, expiresAt: entry[5].number, meta: entry[9].data)
        return entry[7] != .null || checksum ^ columns == RowChecksum.ofPayload(entry[10].data ?? Data())
    }

    /// Inserts a row, and returns false if it does not fit the table or is there already.
    @discardableResult
    private static func insert(_ row: [RawValue], _ sql: SQL, _ copy: inout Connection) throws(SQLiteError) -> Bool {
        try isInserted { () throws(SQLiteError) in
            try copy.run(sql) { statement throws(SQLiteError) in
                for (index, value) in row.enumerated() { try statement.bind(value, at: Int32(index + 1)) }
            }
        } && copy.changes > 0
    }

    /// Runs an insertion, and returns false if the row does not fit the table.
    private static func isInserted(_ insert: () throws(SQLiteError) -> Void) throws(SQLiteError) -> Bool {
        do { try insert() } catch { if .constraint ~= error.code { return false } else { throw error } }
        return true
    }

    /// Reads the rows of a statement up to the first that cannot be read.
    private static func read(
        _ sql: SQL, _ id: Int64? = nil, from source: inout Connection, _ body: ([RawValue]) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        try reading { () throws(SQLiteError) in
            try source.with(sql) { row throws(SQLiteError) in
                try row.bind([id])
                while try row.step() { try body(row.values) }
            }
        }
    }

    /// Runs a read up to the first row that is damaged.
    private static func reading(_ read: () throws(SQLiteError) -> Void) throws(SQLiteError) {
        do { try read() } catch { if !error.isCorruption { throw error } }
    }

    /// Reads the rows of a table in the order of their ids, which are above 0, and skips those that cannot be read.
    private static func readByID(
        _ sql: SQL, from source: inout Connection, _ body: ([RawValue]) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        var next: Int64? = 0
        while let first = next {
            do {
                try source.with(sql) { row throws(SQLiteError) in
                    try row.bind(first, at: 1)
                    while try row.step() {
                        let id = row.int64(0)
                        // A page in the wrong place could lead back without end.
                        guard let least = next, id >= least else { throw SQLiteError.damagedOrder }
                        try body(row.values)
                        next = id == .max ? nil : id + 1
                    }
                    next = nil
                }
            } catch  where error.isCorruption {
                guard let failed = next else { return }
                next = try nextReadable(sql, from: &source, after: failed)
            }
        }
    }

    /// Returns the first id after a damaged page, by steps that double until an id can be read, and a binary search.
    private static func nextReadable(
        _ sql: SQL, from source: inout Connection, after failed: Int64
    ) throws(SQLiteError) -> Int64? {
        func isReadable(_ id: Int64, _ source: inout Connection) throws(SQLiteError) -> Bool {
            do {
                return try source.with(sql) { row throws(SQLiteError) in
                    try row.bind(id, at: 1)
                    return try !row.step() || row.int64(0) >= id
                }
            } catch  where error.isCorruption {
                return false
            }
        }
        var (low, high, step) = (failed, failed, Int64(1))
        repeat {
            if step > .max / 2 - failed { return nil }
            (low, high, step) = (high, failed + step, step * 2)
        } while try !isReadable(high, &source)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if try isReadable(middle, &source) { high = middle } else { low = middle }
        }
        return high
    }

    /// Fetches what the index of keys names and the table did not show, from both ends of the index.
    private mutating func readThroughIndex(from source: inout Connection, _ copy: inout Connection) throws(SQLiteError)
    {
        var missing: [Int64: (cache: Int64, key: StoredKey)] = [:]
        for sql in SQL.indexedEntries {
            var last: (cache: Int64, key: StoredKey)?
            try Self.read(sql, from: &source) { (row) throws(SQLiteError) in
                guard let id = row[0].number, let cache = row[1].number, let key = row[2].key else { return }
                let isFirst = sql === SQL.indexedEntries[0]
                if let last {
                    let isAhead = last.cache == cache ? last.key.precedes(key) : last.cache < cache
                    if isAhead != isFirst || (last.cache == cache && last.key == key) { throw SQLiteError.damagedOrder }
                }
                last = (cache, key)
                if caches[cache] != false, try !copy.has(key, in: cache) { missing[id] = (cache, key) }
            }
        }
        for (id, place) in missing {
            try Self.read(.salvagedEntry, id, from: &source) { (entry) throws(SQLiteError) in
                try copyEntry(entry, &copy)
            }
            if try !copy.has(place.key, in: place.cache) { damaged.insert(id) }
        }
    }
}

extension Connection {
    fileprivate mutating func has(_ key: StoredKey, in cache: Int64) throws(SQLiteError) -> Bool {
        try with(.hasEntry) { row throws(SQLiteError) in
            try row.bind(cache, at: 1)
            try row.bind(key, at: 2)
            return try row.step()
        }
    }
}

extension RawValue {
    fileprivate var number: Int64? { if case .integer(let number) = self { number } else { nil } }
    fileprivate var data: Data? { if case .blob(let bytes) = self { Data(bytes) } else { nil } }
    fileprivate var key: StoredKey? {
        switch self {
        case .integer(let number): .integer(number)
        case .text(let bytes): .text(String(decoding: bytes, as: UTF8.self))
        case .blob(let bytes): .blob(Data(bytes))
        default: nil
        }
    }
}
