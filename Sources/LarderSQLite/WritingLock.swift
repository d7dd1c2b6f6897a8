internal import LarderCSQLite

/// The lock of a writer on a file that may no longer be a database.
///
/// No statement runs on its connection, so no byte of the file is interpreted.
package struct WritingLock: ~Copyable {
    private let connection: Connection
    private var isLocked = false

    /// Opens the file of a database that is to be locked.
    package init(path: String) throws(SQLiteError) {
        let opened = try Connection.open(.file(path))
        // If SQLite may not write the file, it opens it for reading.
        if opened.isReadOnly() {
            throw SQLiteError(code: .readOnly, message: "the file could be opened only for reading")
        }
        connection = opened
    }

    /// Keeps every other connection from writing to a database in log mode, until this value is released.
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
