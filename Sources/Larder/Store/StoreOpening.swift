package import LarderSQLite

/// How a store comes to its database, and what becomes of a damaged one.
package protocol StoreOpening: Sendable {
    /// Opens the database, made or brought up to date as needed.
    ///
    /// - Parameter damage: A database that was found damaged, with what SQLite said of it: its files are set aside if
    ///   they still stand at their path.
    func open(instead damage: StoreDamage?) throws(CacheError) -> Opened

    /// Whether a damaged database is replaced by a new one.
    var replacesDamaged: Bool { get }

    /// How errors name the store.
    var name: String { get }
}

/// An open database, and what there is to tell of the opening.
package struct Opened: Sendable {
    package let database: Database
    package var notices: [StoreNotice] = []
}

/// Damage that was met after opening.
package struct StoreDamage: Sendable {
    package let identity: FileIdentity?
    package let error: SQLiteError
}
