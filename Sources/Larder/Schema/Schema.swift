internal import LarderMigrations
package import LarderSQLite

/// The tables: which steps lead to them, and whether they are there.
package enum Schema {
    /// Marks a database file as ours: the letters "Lrdr".
    package static let applicationID: Int32 = 0x4C72_6472

    /// The number of the newest step this library knows.
    package static let current = MigrationStep.all.last?.number ?? 0

    /// Takes `connection` from the step it stands at to the newest, each step in a transaction with its number.
    ///
    /// The caller holds the lock file, so no other process does the same.
    package static func migrate(_ connection: inout Connection) throws(SQLiteError) {
        let version = try connection.userVersion()
        for step in MigrationStep.all where step.number > version {
            try connection.transaction { (connection) throws(SQLiteError) in
                try connection.execute(step.sql)
                try connection.setUserVersion(step.number)
            }
        }
    }

    /// Throws what SQLite says if a table or a column that we use is missing.
    package static func check(_ connection: inout Connection) throws(SQLiteError) {
        for probe in [cacheProbe, entryProbe, tagProbe] {
            do {
                try connection.run(probe)
            } catch  where error.code == .error {
                throw SQLiteError(code: .corrupt, message: error.message, sql: error.sql)
            }
        }
    }

    private static let cacheProbe = SQL(
        """
        SELECT id, name, version, codec, age_rule, age, keeps_expired, is_retired, lineage, checksum, opened_at FROM cache
            LIMIT 0
        """)
    private static let entryProbe = SQL(
        """
        SELECT id, cache, key, size, written_at, accessed_at, age_rule, age, is_pinned, revision, used,
            checksum, cost, file, tags, extended, payload FROM entry LIMIT 0
        """)
    private static let tagProbe = SQL(
        """
        SELECT tag, cache, entry FROM tag LIMIT 0
        """)
}
