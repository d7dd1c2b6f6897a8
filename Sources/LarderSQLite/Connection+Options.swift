internal import LarderCSQLite

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
}
