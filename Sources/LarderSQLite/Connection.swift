internal import LarderCSQLite

/// An open database that owns its handle and its prepared statements, and closes when it is released.
///
/// It is move-only, and statements are only lent to closures, so that none can be used after the connection is
/// closed. It is not synchronised: keep it in a `Mutex`.
///
/// Safety: The handle and `pagesInLog` are freed in `deinit` alone. Statements are finalised before, so the handle
/// closes at once, and the hook that writes through the pointer is not called again. The type is move-only: no copy
/// is left.
@usableFromInline
package struct Connection: ~Copyable {
    let handle: OpaquePointer

    /// Prepared statements by `SQL.index`.
    private var statements: [OpaquePointer?] = []

    /// True between the beginning and the end of a transaction, also if SQLite has rolled it back in the meantime.
    var isInTransaction = false

    /// The failure at which SQLite rolled back the open transaction; nothing more may run until it ends.
    var lostTransaction: SQLiteError?

    /// A Boolean value that indicates whether the read transaction of the last commit is kept.
    package internal(set) var keepsReading = false

    /// The step of older tables that views show as the newest ones; nil if there are no such views.
    package private(set) var shownStep: Int32?

    /// A Boolean value that indicates whether a commit waits until it is past the cache of the drive.
    private(set) var syncsCommits = false

    /// The place to which the log hook writes the number of pages in the log.
    private let pagesInLog: UnsafeMutablePointer<Int32>

    /// Takes over `handle`, as SQLite opened it.
    private init(handle: OpaquePointer) {
        self.handle = handle
        pagesInLog = .allocate(capacity: 1)
        pagesInLog.initialize(to: 0)
    }

    /// Opens `location` and sets every pragma that `options` names.
    package static func open(_ location: Location, _ options: Options) throws(SQLiteError) -> Connection {
        var connection = try open(location)
        try connection.configure(options)
        connection.syncsCommits = options.synchronous == .full
        connection.watchLog()
        return connection
    }

    /// Opens `location` with SQLite's defaults, and reads nothing.
    package static func open(_ location: Location) throws(SQLiteError) -> Connection {
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(location.name, &handle, location.flags, nil)
        guard let handle else { throw SQLiteError(code: .outOfMemory, message: "no memory for a connection") }
        let connection = Connection(handle: handle)
        guard code == SQLITE_OK else { throw connection.lastError(code) }
        return connection
    }

    private func watchLog() {
        sqlite3_wal_hook(
            handle,
            { cell, _, _, pages in
                cell?.assumingMemoryBound(to: Int32.self).pointee = pages
                return SQLITE_OK
            }, pagesInLog)
    }

    deinit {
        for statement in statements { sqlite3_finalize(statement) }
        sqlite3_close_v2(handle)
        pagesInLog.deallocate()
    }

    /// The number of pages in the write-ahead log after this connection's last commit.
    package var logPages: Int { Int(pagesInLog.pointee) }

    /// A Boolean value that indicates whether no transaction is open.
    package var isInAutocommit: Bool { sqlite3_get_autocommit(handle) != 0 }

    /// The number of rows changed since the opening.
    package var totalChanges: Int { Int(sqlite3_total_changes64(handle)) }

    /// The number of rows changed by the last statement.
    package var changes: Int { Int(sqlite3_changes64(handle)) }

    /// A Boolean value that indicates whether no statement is on a row.
    package var isIdle: Bool {
        var statement = sqlite3_next_stmt(handle, nil)
        while let current = statement {
            if sqlite3_stmt_busy(current) != 0 { return false }
            statement = sqlite3_next_stmt(handle, current)
        }
        return true
    }

    /// Returns the error that the handle holds now.
    func lastError(_ code: Int32, sql: String? = nil) -> SQLiteError {
        SQLiteError(of: handle, code, sql: sql)
    }

    /// Returns the prepared form of `sql`, which is created on first use.
    mutating func prepared(_ sql: SQL) throws(SQLiteError) -> OpaquePointer {
        if sql.index < statements.count, let statement = statements[sql.index] { return statement }
        let statement = try prepare(sql.text, flags: UInt32(SQLITE_PREPARE_PERSISTENT))
        while statements.count <= sql.index { statements.append(nil) }
        statements[sql.index] = statement
        return statement
    }

    func prepare(_ text: String, flags: UInt32) throws(SQLiteError) -> OpaquePointer {
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(handle, text, -1, flags, &statement, nil)
        guard code == SQLITE_OK, let statement else { throw lastError(code, sql: text) }
        return statement
    }
}

extension Connection {
    /// Returns whether SQLite could open the file only for reading, which it tries if it may not write.
    package func isReadOnly() -> Bool { sqlite3_db_readonly(handle, "main") != 0 }

    /// Returns whether there is a table, an index, a view or a trigger.
    package mutating func hasTables() throws(SQLiteError) -> Bool {
        try text("SELECT count(*) FROM sqlite_schema") != "0"
    }

    /// Marks an empty database as the library's, in one transaction with the check that it is empty.
    ///
    /// The mark is in the main file before there is a log, so that the library's file is known by its first hundred
    /// bytes whatever happens to the log.
    ///
    /// - Returns: False, and nothing has changed, if it is not empty: another connection filled it since the last
    ///   check.
    package mutating func claimEmptyDatabase(applicationID: Int32) throws(SQLiteError) -> Bool {
        // The form of an empty file when it is created; `giveForm` handles the others.
        try execute("PRAGMA page_size = \(Self.pageSize); PRAGMA auto_vacuum = INCREMENTAL; BEGIN EXCLUSIVE")
        do {
            let mark = try self.applicationID()
            guard try !hasTables(), mark == 0 else {
                try execute("ROLLBACK")
                return false
            }
            try execute("PRAGMA user_version = 0; PRAGMA application_id = \(applicationID); COMMIT")
            return true
        } catch {
            if !isInAutocommit { try execute("ROLLBACK") }
            throw error
        }
    }

    /// Gives a database without tables the library's page size and incremental vacuum; may be repeated after a crash.
    package mutating func giveForm() throws(SQLiteError) {
        let pageSize = try pragma("page_size")
        let vacuum = try pragma("auto_vacuum")
        guard pageSize != Self.pageSize || vacuum != 2 else { return }
        try execute("PRAGMA journal_mode = DELETE")
        try execute("PRAGMA page_size = \(Self.pageSize); PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
    }

    /// Writes without a journal and without waiting for the disk, for a file that is deleted if anything fails.
    package mutating func forgoJournal() throws(SQLiteError) {
        try execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    }

    /// Shows tables in another form, by views that only this connection has.
    ///
    /// - Parameter step: The step of the schema that the tables have.
    package mutating func show(step: Int32, byViews views: [String: String]) throws(SQLiteError) {
        if shownStep != nil { return }
        let sql = views.map { "CREATE TEMP VIEW \($0) AS \($1);" }.joined()
        try execute("PRAGMA query_only = 0; \(sql) PRAGMA query_only = 1")
        shownStep = step
    }

    /// Writes a compact copy of the database into a new file, whatever this connection may write itself.
    package mutating func copy(into path: String) throws(SQLiteError) {
        let name = path.replacing("'", with: "''")
        try execute("PRAGMA query_only = 0; VACUUM INTO '\(name)'; PRAGMA query_only = 1")
    }

    /// Returns whether all pages can be read and fit together.
    package mutating func isSound() throws(SQLiteError) -> Bool { try text("PRAGMA quick_check(1)") == "ok" }

    /// Returns a number that changes with each commit of another connection.
    package mutating func dataVersion() throws(SQLiteError) -> Int64 { try pragma("data_version") }

    /// Turns the write-ahead log on; false if the file system does not support it.
    package mutating func enableLog() throws(SQLiteError) -> Bool {
        try text("PRAGMA journal_mode = WAL") == "wal"
    }

    /// Sets `user_version`, the number of the schema's last step.
    package mutating func setUserVersion(_ version: Int32) throws(SQLiteError) {
        try execute("PRAGMA user_version = \(version)")
    }

    /// Returns the number of the schema's last step.
    package mutating func userVersion() throws(SQLiteError) -> Int32 {
        try with(.userVersion) { row throws(SQLiteError) in
            try row.step() ? Int32(truncatingIfNeeded: row.int64(0)) : 0
        }
    }

    /// Returns the id of the application to which the file belongs.
    package mutating func applicationID() throws(SQLiteError) -> Int32 {
        Int32(truncatingIfNeeded: try pragma("application_id"))
    }

    /// Returns the value of a pragma that is a number.
    package mutating func pragma(_ name: String) throws(SQLiteError) -> Int64 {
        try text("PRAGMA \(name)").flatMap { Int64($0) } ?? 0
    }

    /// Returns the first column of the first row as text.
    package mutating func text(_ sql: String) throws(SQLiteError) -> String? { try texts(sql).first }

    /// Returns the first column of every row as text; NULL is an empty one.
    package mutating func texts(_ sql: String) throws(SQLiteError) -> [String] {
        try requireTransaction()
        let statement = try prepare(sql, flags: 0)
        defer { sqlite3_finalize(statement) }
        var texts: [String] = []
        while true {
            switch Statement.step(statement) {
            case SQLITE_ROW: texts.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "")
            case SQLITE_DONE: return texts
            case let code: throw lastError(code, sql: sql)
            }
        }
    }

    /// Runs every statement of `sql`, without keeping them prepared.
    package mutating func execute(_ sql: String) throws(SQLiteError) {
        try requireTransaction()
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code != SQLITE_OK else { return }
        let error = lastError(code, sql: sql)
        noteFailure(error)
        throw error
    }
}

extension SQL {
    fileprivate static let userVersion = SQL("PRAGMA user_version")
}

extension Connection {
    /// The purpose of a connection.
    package enum Role: Sendable {
        /// Writes, and runs the checkpoints.
        case writer
        /// Only reads.
        case reader
        /// Holds the write lock while another connection works; has almost no page cache.
        case guardian
    }

    /// The durability of a commit.
    package enum Synchronous: Int, Sendable {
        /// The commit survives the death of the process.
        case normal = 1
        /// The commit survives the loss of power.
        case full = 2
    }

    /// The settings of a connection; the defaults of SQLite or its packager are never used.
    package struct Options: Sendable {
        package var role: Role
        package var synchronous: Synchronous
        package var busyMilliseconds: Int32
        /// A Boolean value that indicates whether a file is read that has fewer pages than its header says, as far as they are
        /// there.
        package var readsCutFiles = false

        package init(
            role: Role, synchronous: Synchronous = .normal, busyMilliseconds: Int32, readsCutFiles: Bool = false
        ) {
            self.readsCutFiles = readsCutFiles
            self.role = role
            self.synchronous = synchronous
            self.busyMilliseconds = busyMilliseconds
        }
    }

    /// The bytes of a page, set when a file is created; measured, see *Design decisions*.
    package static let pageSize = 4096

    /// The maximum size of the pages that a writer or a reader keeps, in KiB.
    ///
    /// A larger cache costs more at every renewal after a commit of another connection.
    package static let cacheKibibytes = 8192

    /// The size to which the log is cut when it starts again after a complete checkpoint.
    package static let logSizeLimit = 4 << 20

    /// Sets how long a statement waits for a lock of another connection.
    package func setBusyTimeout(_ milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

    mutating func configure(_ options: Options) throws(SQLiteError) {
        sqlite3_busy_timeout(handle, options.busyMilliseconds)
        // A checkpoint on close would run without the write lock held: see ``checkpoint(guardedBy:)``.
        try check(larder_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1))
        // The schema of a file from an unknown source must not be able to call functions.
        try check(larder_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0))
        try check(larder_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0))
        try check(larder_db_config(handle, SQLITE_DBCONFIG_DQS_DDL, 0))
        // Before those that read the file.
        if options.readsCutFiles { try execute("PRAGMA writable_schema = ON") }
        for (name, value) in Self.pragmas(for: options) { try execute("PRAGMA \(name) = \(value)") }
        // Deleted bytes are overwritten in pages that are written anyway.
        try execute("PRAGMA secure_delete = FAST")
    }

    private static func pragmas(for options: Options) -> [(name: String, value: Int)] {
        [
            ("synchronous", options.synchronous.rawValue),
            ("fullfsync", options.synchronous == .full ? 1 : 0),
            // Apple's SQLite has it by default: a checkpoint that passes the drive's cache.
            ("checkpoint_fullfsync", 1),
            ("wal_autocheckpoint", 0),
            ("journal_size_limit", logSizeLimit),
            ("cache_size", options.role == .guardian ? 16 : -cacheKibibytes),
            ("mmap_size", 0),
            ("foreign_keys", 0),
            ("temp_store", 2),
            ("query_only", options.role == .reader ? 1 : 0),
        ]
    }

    private func check(_ code: Int32) throws(SQLiteError) {
        guard code == SQLITE_OK else { throw lastError(code) }
    }

    /// The database to open, and the way to open it.
    package struct Location: Sendable {
        let name: String
        let flags: Int32

        /// A database in memory that no other connection can see.
        package static let memory = Location(
            name: ":memory:",
            flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX)

        /// An existing file, to read and write.
        ///
        /// A symbolic link is not followed.
        package static func file(_ path: String) -> Location {
            Location(name: path, flags: SQLITE_OPEN_READWRITE | common)
        }

        /// An existing file of which nothing changes on disk, including the log's shared memory.
        package static func readOnlyFile(_ path: String) -> Location {
            Location(name: uri(path, "readonly_shm=1"), flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | common)
        }

        /// An existing file without its log and without locks: only for a file that no process writes.
        package static func immutableFile(_ path: String) -> Location {
            Location(name: uri(path, "immutable=1"), flags: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | common)
        }

        private static let common =
            SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE

        private static func uri(_ path: String, _ query: String) -> String {
            var name = "file:"
            for byte in path.utf8 {
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
                    UInt8(ascii: "_"):
                    name.unicodeScalars.append(Unicode.Scalar(byte))
                default:
                    let digits = String(byte, radix: 16, uppercase: true)
                    name += "%" + (digits.count == 1 ? "0" : "") + digits
                }
            }
            return name + "?" + query
        }
    }
}

/// The space of a database's files on their disk.
extension Connection {
    /// Returns the number of pages of the database, with those that the open transaction adds.
    package mutating func pageCount() throws(SQLiteError) -> Int {
        try with(.pageCount) { (statement) throws(SQLiteError) in
            try statement.step() ? Int(statement.int64(0)) : 0
        }
    }

    /// The length of the main file.
    package var fileSize: Int64 { max(0, larder_file_size(larder_main_file(handle))) }

    /// The length of the log's file, of which a part may be in use.
    package var logFileSize: Int64 { max(0, larder_file_size(larder_log_file(handle))) }
}

extension SQL {
    fileprivate static let pageCount = SQL("PRAGMA page_count")
}

extension Connection {
    /// Keeps one read transaction open over the following reads, so that they need no locks; a second call renews it.
    ///
    /// It is one of BEGIN: else SQLite does all of a commit at the end of each statement.
    package mutating func holdSnapshot() throws(SQLiteError) {
        try releaseSnapshot()
        try run(.begin)
        do throws(SQLiteError) { try run(.snapshot) } catch {
            try releaseSnapshot()
            throw error
        }
    }

    /// Releases the transaction that `holdSnapshot` holds.
    package mutating func releaseSnapshot() throws(SQLiteError) {
        if !isInAutocommit { try run(.commit) }
    }
}

extension SQL {
    /// A look that takes the snapshot.
    fileprivate static let snapshot = SQL("SELECT 1 FROM sqlite_schema LIMIT 1")
}

extension Connection {
    /// Returns the number of empty pages of the file.
    package mutating func freePages() throws(SQLiteError) -> Int { Int(try pragma("freelist_count")) }

    /// Returns up to so many empty pages to the file system.
    package mutating func vacuum(pages: Int) throws(SQLiteError) {
        stopReading()
        try execute("PRAGMA incremental_vacuum(\(pages))")
    }

    /// Rewrites the whole file without empty pages and unused bytes.
    package mutating func vacuum() throws(SQLiteError) {
        stopReading()
        try execute("VACUUM")
    }

    /// Returns whether the file may have more pages than it has.
    package mutating func canGrow() throws(SQLiteError) -> Bool { try pragma("page_count") < pragma("max_page_count") }

    /// Returns the faults that SQLite finds in the file, a sentence each; takes reading every page.
    package mutating func integrityProblems() throws(SQLiteError) -> [String] {
        let text = try texts("PRAGMA integrity_check(100)")
        return text == ["ok"] ? [] : text
    }
}
