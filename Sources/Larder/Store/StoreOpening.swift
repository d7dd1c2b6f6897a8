package import LarderSQLite

/// How a store comes to its database, and what becomes of a damaged one.
package protocol StoreOpening: Sendable {
    /// Opens the database, made or brought up to date as needed.
    ///
    /// - Parameter loss: What is wrong with the one that was open before, if one was.
    func open(after loss: StoreLoss?) throws(CacheError) -> Opened

    /// Whether a damaged database is replaced by a new one.
    var replacesDamaged: Bool { get }

    /// Whether nothing is ever made or moved.
    var isReadOnly: Bool { get }

    /// How errors name the store.
    var name: String { get }
}

/// An open database, and what there is to tell of the opening.
package struct Opened: Sendable {
    package let database: Database
    package var notices: [StoreNotice] = []
    /// What became of a damaged one.
    package var salvaged: SalvagedStore?
}

/// A damaged store that was replaced.
package struct SalvagedStore: Sendable {
    /// The entries in the new store, and those that could not be read as far as there is a trace of them.
    package let entries: Int
    package let lost: Int
    /// Where the original is.
    package let path: String

    package init(entries: Int, lost: Int, path: String) {
        (self.entries, self.lost, self.path) = (entries, lost, path)
    }
}

/// Why a database that was open has to be opened again.
package struct StoreLoss: Sendable {
    /// Which file it was, and which its log.
    package let identity: FileIdentity?
    package let logIdentity: FileIdentity?

    /// What SQLite said, if it was found damaged: its files are set aside if they still stand at their path.
    ///
    /// If it was moved or deleted instead, its log is, where another database stands now.
    package let damage: SQLiteError?

    /// Whether the damage was met again after an opening that could not find it.
    package let isCertain: Bool

    /// Whether the replacement was asked for, whatever the policy of recovery is.
    package var isRepair = false
}
