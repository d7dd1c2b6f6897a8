internal import LarderCSQLite

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
