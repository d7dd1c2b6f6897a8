import Foundation
package import Larder
import LarderSQLite

/// A look into the store of a manager, below the public face.
///
/// Suites that look there know nothing else of the store.
package struct StoreProbe: Sendable {
    private let manager: CacheManager

    package init(_ manager: CacheManager) { self.manager = manager }

    /// A Boolean value that indicates whether no statement stands on a row.
    ///
    /// Idle readers let go first.
    package var isIdle: Bool {
        get throws { try manager.store().isIdle }
    }

    /// The number of writes that wait for their turn.
    package var waitingCount: Int {
        get throws { try manager.store().queue.waitingCount }
    }

    /// Returns the number of rows that the table of entries has, of whatever generation.
    package func entryCount() throws -> Int { try manager.store().entryCount() }

    /// Returns the number of notes of tags.
    package func tagCount() throws -> Int {
        try manager.store().read { (connection) throws(SQLiteError) in try connection.countTags() }
    }

    /// Returns the number of commits that the log of the store's file has counted.
    ///
    /// It rises by one with each transaction that changes something, whoever makes it.
    package func commitCount() throws -> Int {
        guard let url = manager.url else { throw SQLiteError(code: .misuse, message: "a store in memory has no log") }
        var connection = try Connection.open(.file(url.path), .init(role: .reader, busyMilliseconds: 120_000))
        // SQLite opens the index of the log with the first read.
        _ = try connection.userVersion()
        guard let counter = CommitCounter(of: connection) else {
            throw SQLiteError(code: .misuse, message: "\(url.path) has no index of its log in memory")
        }
        return Int(counter.stamp().changes)
    }

    /// Copies the log into the main file.
    package func copyLog() throws { try manager.store().checkpoint() }

    /// Returns what rows and files say differently of large values, a sentence each.
    ///
    /// - Parameter isSwept: A Boolean value that indicates whether what no row names is deleted first.
    package func fileProblems(isSwept: Bool = false) throws -> [String] { try manager.fileProblems(isSwept: isSwept) }
}

extension StoreProbe {
    /// What the tables say of a cache.
    package struct Rows: Sendable {
        package let count: Int
        package let size: Int64
        /// The number of rows whose size is not that of their bytes.
        package let unsound: Int
    }

    /// Returns what the tables say of the current generation of a cache.
    package func rows(ofCache name: String) throws -> Rows {
        try manager.store().read { (connection) throws(SQLiteError) -> Rows in
            try connection.with(.rows) { (statement) throws(SQLiteError) -> Rows in
                try statement.bind(name, at: 1)
                _ = try statement.step()
                return Rows(
                    count: Int(statement.int64(0)), size: statement.int64(1), unsound: Int(statement.int64(2)))
            }
        }
    }
}

extension SQL {
    fileprivate static let rows = SQL(
        """
        SELECT count(*), ifnull(sum(size), 0),
            ifnull(sum(CASE WHEN file IS NULL
                THEN payload IS NULL OR size <> length(payload) + ifnull(length(extended), 0)
                ELSE payload IS NOT NULL END), 0)
        FROM entry JOIN cache ON cache.id = entry.cache WHERE cache.name = ?1 AND cache.is_retired = 0
        """)
}
