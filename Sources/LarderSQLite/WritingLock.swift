internal import LarderCSQLite

/// The lock of a writer on a file that may be no database any more.
///
/// No statement runs on the connection behind it, so no byte of the file is interpreted.
package struct WritingLock: ~Copyable {
    private let connection: Connection
    private var isLocked = false

    /// Opens the file of a database, to be locked.
    package init(path: String) throws(SQLiteError) {
        let opened = try Connection.open(.file(path))
        // SQLite opens for reading what it may not write.
        if opened.isReadOnly() {
            throw SQLiteError(code: .readOnly, message: "the file could be opened only for reading")
        }
        connection = opened
    }

    /// Keeps every other connection from writing to a database in the mode of the log, until this value ends.
    ///
    /// - Returns: False if another connection is writing.
    package mutating func lock() throws(SQLiteError) -> Bool {
        let code = larder_lock_writing(connection.handle)
        if code & 0xff == SQLITE_BUSY { return false }
        guard code == SQLITE_OK else {
            let number = larder_take_main_errno(connection.handle)
            throw SQLiteError(code: .init(rawValue: code), message: "its log cannot be locked", systemCode: number)
        }
        isLocked = true
        return true
    }

    deinit {
        if isLocked { larder_unlock_writing(connection.handle) }
    }
}
