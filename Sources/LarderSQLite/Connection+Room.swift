internal import LarderCSQLite

/// The space of a database's files on their disk.
extension Connection {
    /// Returns the number of pages of the database, with those that the open transaction adds.
    package mutating func pageCount() throws(SQLiteError) -> Int {
        try with(.pageCount) { (statement) throws(SQLiteError) in
            try statement.step() ? Int(statement.int64(0)) : 0
        }
    }

    /// The length of the main file.
    package var fileSize: Int64 { max(0, larder_file_size(larder_main_file(handle))) }

    /// The length of the log's file, of which a part may be in use.
    package var logFileSize: Int64 { max(0, larder_file_size(larder_log_file(handle))) }
}

extension SQL {
    fileprivate static let pageCount = SQL("PRAGMA page_count")
}
