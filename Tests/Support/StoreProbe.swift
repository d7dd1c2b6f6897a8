import Foundation
package import Larder
internal import LarderSQLite
internal import LarderStore

/// A look into the store of a manager, below the public face.
///
/// Suites that look there know nothing else of the store.
package struct StoreProbe: Sendable {
    private let manager: CacheManager

    package init(_ manager: CacheManager) { self.manager = manager }

    /// A Boolean value that indicates whether no call of the store is running.
    package var isIdle: Bool { get throws { manager.store.waitingCount == 0 } }

    /// The number of writes that wait for their turn.
    package var waitingCount: Int { get throws { manager.store.waitingCount } }

    /// Returns the number of rows that the table of entries has, of whatever incarnation.
    package func entryCount() throws -> Int { Int(try numbers("count(*), 0, 0, 0 FROM entry")[0]) }

    /// Returns the number of notes of tags.
    package func tagCount() throws -> Int { Int(try numbers("count(*), 0, 0, 0 FROM tag")[0]) }

    /// Returns the number of commits that the log of the store's file has counted.
    package func commitCount() throws -> Int {
        var connection = try other()
        _ = try connection.userVersion()
        guard let counter = CommitCounter(of: connection) else {
            throw SQLiteError(code: .misuse, message: "the log has no index in memory")
        }
        return Int(counter.mark().changes)
    }

    /// Copies the log into the main file.
    package func copyLog() throws { try manager.maintain() }

    /// Returns what rows and files say differently of large values, a sentence each.
    ///
    /// - Parameter isSwept: A Boolean value that indicates whether what no row names counts too.
    package func fileProblems(isSwept: Bool = false) throws -> [String] {
        guard let url = manager.url else { return [] }
        if isSwept { try manager.maintain() }
        let (named, found) = (try namedFiles(), try Self.files(of: url))
        var problems: [String] = []
        for (name, size) in found where isSwept && named[name] == nil {
            problems.append("no row names \(name), \(size) bytes")
        }
        for (name, size) in named where found[name] != size {
            problems.append("a row says \(size) bytes of \(name), which has \(found[name].map(String.init) ?? "none")")
        }
        return problems.sorted()
    }

    /// Returns the value files that rows name, with the lengths that they say.
    package func namedFiles() throws -> [String: Int64] {
        var connection = try other()
        return try connection.with(SQL("SELECT file, size FROM entry WHERE file IS NOT NULL")) {
            row throws(SQLiteError) in
            var named: [String: Int64] = [:]
            while try row.step() { named[row.text(0)] = row.int64(1) }
            return named
        }
    }

    private static func files(of store: URL) throws -> [String: Int64] {
        let folder = store.deletingPathExtension().path + ".files"
        guard FileManager.default.fileExists(atPath: folder) else { return [:] }
        var files: [String: Int64] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder + "/" + name)
            files[name] = Int64(attributes[.size] as? Int ?? -1)
        }
        return files
    }

    /// A connection of the kind that another process has.
    private func other() throws -> Connection {
        guard let url = manager.url else { throw SQLiteError(code: .misuse, message: "a store in memory has no file") }
        return try Connection.open(.file(url.real.path), .init(role: .reader, busyMilliseconds: 120_000))
    }

    /// Returns the notes of a cache by their numbers, as texts.
    package func notes(ofCache name: String) throws -> [Int64: String] {
        var connection = try other()
        var notes: [Int64: String] = [:]
        try connection.with(SQL("SELECT number, CAST(content AS TEXT) FROM note WHERE cache = ?1")) {
            row throws(SQLiteError) in
            try row.bind(name, at: 1)
            while try row.step() { notes[row.int64(0)] = row.text(1) }
        }
        return notes
    }

    /// Writes a note of a cache.
    package func setNote(_ number: Int64, _ content: String, ofCache name: String) throws {
        guard let url = manager.url else { return }
        var connection = try Connection.open(.file(url.real.path), .init(role: .writer, busyMilliseconds: 10_000))
        try connection.with(
            SQL("INSERT OR REPLACE INTO note (cache, number, content) VALUES (?1, ?2, CAST(?3 AS BLOB))")
        ) {
            row throws(SQLiteError) in
            try row.bind(name, at: 1)
            try row.bind(number, at: 2)
            try row.bind(content, at: 3)
            _ = try row.step()
        }
    }

    /// Returns the first row of a query.
    private func numbers(_ query: String, text: String? = nil) throws -> [Int64] {
        func read(_ connection: inout Connection) throws(SQLiteError) -> [Int64] {
            try connection.with(SQL("SELECT " + query)) { row throws(SQLiteError) in
                if let text { try row.bind(text, at: 1) }
                return try row.step() ? (0..<4).map { row.int64($0) } : []
            }
        }
        if manager.url == nil { return try manager.store.transaction { try read(&$0.connection) } }
        var connection = try other()
        return try read(&connection)
    }
}

extension StoreProbe {
    /// What the tables say of a cache.
    package struct Rows: Sendable {
        package let count: Int
        package let size: Int64
        /// The number of rows that have neither a payload nor a file, or both.
        package let unsound: Int
    }

    /// Returns what the tables say of the current incarnation of a cache.
    package func rows(ofCache name: String) throws -> Rows {
        let found = try numbers(
            """
            count(*), sum(ifnull(size, length(payload))), sum((file IS NULL) = (payload IS NULL)), count(meta)
            FROM entry JOIN cache ON cache.id = entry.cache WHERE cache.name = ?1 AND cache.state = 0
            """, text: name)
        // Extended data counts too, and is packed.
        let size = found[3] == 0 ? nil : try manager.store.caches().first { $0.declaration.name == name }?.size
        return Rows(count: Int(found[0]), size: size ?? found[1], unsound: Int(found[2]))
    }
}
