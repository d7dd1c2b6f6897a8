internal import LarderMigrations
internal import LarderSQLite

/// The tables of a store, which the files of `Migrations` create, a step each.
package enum Schema {
    /// "LrdS": marks a file as a store of this module.
    package static let applicationID: Int32 = 0x4C72_6453
    /// The number of the last step.
    package static let current = MigrationStep.all.map(\.number).max() ?? 0

    /// Brings the tables to the newest step in one transaction, unless another process has done so.
    static func migrate(_ connection: inout Connection) throws(SQLiteError) {
        try connection.transaction { (connection) throws(SQLiteError) in
            let version = try connection.userVersion()
            guard version < current else { return }
            for step in MigrationStep.all where step.number > version { try connection.execute(step.sql) }
            if version == 0 { try connection.run(.insertStore) }
            if version == 1 { try connection.sealIncarnations() }
            try connection.setUserVersion(current)
        }
    }

    /// Throws if the tables are not of this release, or shown as such.
    ///
    /// An older number means that the file was replaced by an older one: opening it again migrates it.
    static func check(_ connection: inout Connection) throws(SQLiteError) {
        let version = try connection.userVersion()
        if version != connection.shownStep ?? current { throw version > current ? .newerSchema : .moved }
    }

    /// Shows older tables as the newest ones to a connection that only reads: what they lack is empty.
    static func show(_ version: Int32, to connection: inout Connection) throws(SQLiteError) {
        if version < 1 || version >= current { return }
        try connection.show(step: version, byViews: SQL.views(ofStep: version))
    }
}
