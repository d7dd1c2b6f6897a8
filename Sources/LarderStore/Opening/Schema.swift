internal import LarderMigrations
internal import LarderSQLite

/// The tables of a store, which the files of `Migrations` create.
enum Schema {
    /// "LrdS": marks a file as a store of this module.
    static let applicationID: Int32 = 0x4C72_6453
    static let current: Int32 = 1

    /// Creates the tables, unless another process has done so.
    static func create(_ connection: inout Connection) throws(SQLiteError) {
        try connection.transaction { (connection) throws(SQLiteError) in
            guard try connection.userVersion() == 0 else { return }
            for step in MigrationStep.all { try connection.execute(step.sql) }
            try connection.run(.insertStore) { _ throws(SQLiteError) in }
            try connection.setUserVersion(current)
        }
    }
}
