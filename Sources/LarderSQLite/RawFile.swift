internal import LarderCSQLite

/// A file that is read, and where needed written, byte by byte through SQLite's file layer.
///
/// SQLite's own descriptor is used, since closing a second one would drop the locks that the process has on the file.
/// No statement ever runs on the connection behind it, so no byte of the file is interpreted.
package struct RawFile: ~Copyable {
    private let connection: Connection
    private var isLockedForWriting = false

    /// The length of the file in bytes when it was opened.
    package let size: Int64

    /// Opens the file at `path`.
    ///
    /// - Parameters:
    ///   - path: The path of a database's main file or of its log.
    ///   - vfs: SQLite's file layer, if it is not the standard one.
    ///   - isWritable: A Boolean value that indicates whether the file is going to be changed or locked.
    /// - Returns: Nil if there is no file at `path`.
    package init?(path: String, vfs: String? = nil, isWritable: Bool = false) throws(SQLiteError) {
        guard let connection = try Self.connection(isWritable ? .file(path, vfs: vfs) : .immutableFile(path, vfs: vfs))
        else { return nil }
        // SQLite opens for reading what it may not write.
        if isWritable, connection.isReadOnly() {
            throw SQLiteError(code: .readOnly, message: "the file could be opened only for reading")
        }
        let size = larder_file_size(larder_main_file(connection.handle))
        guard size >= 0 else { throw Self.failure(SQLITE_IOERR, connection, "its length cannot be read") }
        self.connection = connection
        self.size = size
    }

    private static func connection(_ location: Connection.Location) throws(SQLiteError) -> Connection? {
        do {
            return try Connection.open(location)
        } catch  where error.isAboutMissingFile {
            return nil
        }
    }

    /// Fills `bytes` from `offset` on; with zeros after the end of the file.
    package func read(into bytes: inout [UInt8], at offset: Int64) throws(SQLiteError) {
        let count = Int32(bytes.count)
        let file = larder_main_file(connection.handle)
        let code = bytes.withUnsafeMutableBytes { larder_read_at(file, $0.baseAddress, count, offset) }
        guard code == SQLITE_OK else { throw Self.failure(code, connection, "it cannot be read") }
    }

    /// Writes `bytes` at `offset`.
    package func write(_ bytes: [UInt8], at offset: Int64) throws(SQLiteError) {
        let count = Int32(bytes.count)
        let file = larder_main_file(connection.handle)
        let code = bytes.withUnsafeBytes { larder_write_at(file, $0.baseAddress, count, offset) }
        guard code == SQLITE_OK else { throw Self.failure(code, connection, "it cannot be written") }
    }

    /// Waits until the bytes of the file are on the disk.
    package func sync() throws(SQLiteError) {
        let code = larder_sync(larder_main_file(connection.handle))
        guard code == SQLITE_OK else { throw Self.failure(code, connection, "it cannot be synced") }
    }

    /// Locks a database's main file against every other connection, of this process too.
    ///
    /// The lock ends with this value.
    ///
    /// - Returns: False if another connection has the database open.
    package func lockAlone() throws(SQLiteError) -> Bool {
        let code = larder_lock_alone(connection.handle)
        if code & 0xff == SQLITE_BUSY { return false }
        guard code == SQLITE_OK else { throw Self.failure(code, connection, "it cannot be locked") }
        return true
    }

    /// Keeps every other connection from writing to a database in the mode of the log.
    ///
    /// The lock ends with this value.
    ///
    /// - Returns: False if another connection is writing.
    package mutating func lockWriting() throws(SQLiteError) -> Bool {
        let code = larder_lock_writing(connection.handle)
        if code & 0xff == SQLITE_BUSY { return false }
        guard code == SQLITE_OK else { throw Self.failure(code, connection, "its log cannot be locked") }
        isLockedForWriting = true
        return true
    }

    deinit {
        if isLockedForWriting { larder_unlock_writing(connection.handle) }
    }

    private static func failure(_ code: Int32, _ connection: borrowing Connection, _ message: String) -> SQLiteError {
        let number = larder_take_main_errno(connection.handle)
        return SQLiteError(code: .init(rawValue: code), message: message, systemCode: number)
    }
}
