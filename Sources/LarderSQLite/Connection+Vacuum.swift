extension Connection {
    /// Returns the number of empty pages of the file.
    package mutating func freePages() throws(SQLiteError) -> Int { Int(try pragma("freelist_count")) }

    /// Returns up to so many empty pages to the file system.
    package mutating func vacuum(pages: Int) throws(SQLiteError) {
        try execute("PRAGMA incremental_vacuum(\(pages))")
    }

    /// Rewrites the whole file without empty pages and unused bytes.
    package mutating func vacuum() throws(SQLiteError) { try execute("VACUUM") }

    /// Returns the faults that SQLite finds in the file, a sentence each; takes reading every page.
    package mutating func integrityProblems() throws(SQLiteError) -> [String] {
        let text = try texts("PRAGMA integrity_check(100)")
        return text == ["ok"] ? [] : text
    }
}
