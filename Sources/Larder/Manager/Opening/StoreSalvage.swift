internal import LarderSQLite

/// Carries every entry that can be read out of a damaged store into a fresh one.
///
/// It reads the pages themselves, so a damaged index, schema or header costs nothing. A row counts if it fits its checksum:
/// that tells good rows from damaged ones, and from what only looks like a row. The memory that it takes does not grow with
/// the store, but for a byte a page.
struct StoreSalvage: ~Copyable {
    private let settings: OpeningSettings
    private let blobs: BlobFolder
    private var reader: RecordReader
    private var report = SalvageReport()

    /// The live generations.
    private var caches: Set<Int64> = []

    /// How many rows do not fit their checksum.
    private var damagedRows = 0

    /// - Parameters:
    ///   - reader: The pages of the damaged store; while this value lives, no process writes to it.
    ///   - blobs: The folder of its large values.
    init(_ reader: consuming RecordReader, blobs: BlobFolder, settings: OpeningSettings) {
        self.reader = reader
        self.blobs = blobs
        self.settings = settings
    }

    /// Writes what can be read into the empty file at `path`, and waits until it is on the disk.
    ///
    /// - Returns: How much that was; nil if it was nothing.
    mutating func write(to path: String) throws -> SalvageReport? {
        let generations = try readGenerations()
        guard !generations.isEmpty else { return nil }
        caches = Set(generations.lazy.filter { !$0.isRetired }.map(\.generation.id))
        var fresh = try Connection.open(.file(path, vfs: settings.vfs), settings.options(.writer))
        try fresh.forgoJournal()
        guard try fresh.claimEmptyDatabase(applicationID: Schema.applicationID) else { throw SQLiteError.moved }
        try Schema.migrate(&fresh)
        try fresh.transaction { (fresh) throws(SQLiteError) in
            for row in generations { try fresh.restore(row) }
            try carryEntries(to: &fresh)
            try fresh.restoreTags()
            report.entries = try fresh.countRows()
            report.lost = max(damagedRows, try countMissing(in: &fresh))
        }
        _ = consume fresh
        try RawFile(path: path, vfs: settings.vfs, isWritable: true)?.sync()
        return report
    }

    // MARK: Caches

    /// Every generation whose row is whole in the table of caches or in the copy of it.
    private mutating func readGenerations() throws(SQLiteError) -> [GenerationRow] {
        var found: [Int64: GenerationRow] = [:]
        let now = SystemClock.now()
        func note(_ record: RawRecord) {
            guard let row = GenerationRow(record, now: now) else { return }
            // The table comes first and knows more; but a retired generation never comes back.
            if let known = found[row.generation.id], known.isRetired || !row.isRetired { return }
            found[row.generation.id] = row
        }
        try reader.forEach(.tables, columns: GenerationRow.columnCount) { (r) throws(SQLiteError) in note(r) }
        try reader.forEach(.indexes, columns: GenerationRow.copyColumnCount) { (r) throws(SQLiteError) in note(r) }
        var names: [ExactName: Int64] = [:]
        for row in found.values where !row.isRetired {
            let name = ExactName(row.generation.name)
            names[name] = max(names[name] ?? .min, row.generation.id)
        }
        return found.values.sorted { $0.generation.id < $1.generation.id }.map { row in
            var row = row
            // At most one generation of a name is live: the last.
            if names[ExactName(row.generation.name)] != row.generation.id { row.isRetired = true }
            return row
        }
    }

    // MARK: Entries

    private mutating func carryEntries(to fresh: inout Connection) throws(SQLiteError) {
        let caches = caches
        var (damaged, hasFiles) = (0, false)
        try reader.forEach(.tables, columns: SalvagedEntry.columnCount) { (record) throws(SQLiteError) in
            guard let entry = SalvagedEntry(record) else { return damaged += 1 }
            guard entry.file == nil else { return hasFiles = true }
            guard entry.isSound else { return damaged += 1 }
            // Rows of a retired generation are nobody's loss.
            guard caches.contains(entry.cache) else { return }
            if try !fresh.restore(entry) { damaged += 1 }
        }
        damagedRows += damaged
        if hasFiles { try carryEntriesOfFiles(to: &fresh) }
    }

    /// Carries the rows that name a file, whose checksum only a look at the file can prove.
    ///
    /// The read of such an entry looks at it. Here that is needed only where another row has the same key.
    private mutating func carryEntriesOfFiles(to fresh: inout Connection) throws(SQLiteError) {
        let (caches, blobs) = (caches, blobs)
        var damaged = 0
        try reader.forEach(.tables, columns: SalvagedEntry.columnCount) { (record) throws(SQLiteError) in
            guard let entry = SalvagedEntry(record), let file = entry.file, caches.contains(entry.cache) else { return }
            guard file.size >= 0, blobs.path(of: file.name) != nil else { return damaged += 1 }
            if try fresh.hasRow(entry.cache, entry.key) {
                guard try blobs.isSound(file) else { return damaged += 1 }
            }
            if try !fresh.restore(entry) { damaged += 1 }
        }
        damagedRows += damaged
    }

    /// How many entries the index by key names that were not carried over.
    private mutating func countMissing(in fresh: inout Connection) throws(SQLiteError) -> Int {
        let caches = caches
        var missing = 0
        try reader.forEach(.indexes, columns: SalvagedKey.columnCount) { (record) throws(SQLiteError) in
            guard let key = SalvagedKey(record), caches.contains(key.cache) else { return }
            if try !fresh.hasRow(key) { missing += 1 }
        }
        return missing
    }
}

/// What a salvage has come to.
package struct SalvageReport: Sendable {
    /// The entries in the new store.
    package var entries = 0

    /// The entries that could not be read, as far as there is a trace of them.
    package var lost = 0
}

extension BlobFolder {
    /// Whether the file holds what a row says.
    fileprivate func isSound(_ file: (name: String, size: Int64, checksum: Int64)) throws(SQLiteError) -> Bool {
        do throws(SystemError) {
            guard case .bytes = try read(file.name, size: file.size, checksum: file.checksum) else { return false }
            return true
        } catch {
            throw SQLiteError(code: .inputOutput, message: "\(error)", systemCode: error.number)
        }
    }
}
