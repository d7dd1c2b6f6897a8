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
