internal import LarderCSQLite
import LarderLocks

/// A prepared statement, lent to a closure.
///
/// It can be neither copied nor kept. It and its bindings are reset when the closure ends: it never stays on a row, and
/// no blob stays bound. Parameters count from 1 and columns from 0, as in SQLite.
@usableFromInline
package struct Statement: ~Copyable {
    let handle: OpaquePointer
    let database: OpaquePointer

    @usableFromInline
    init(handle: OpaquePointer, database: OpaquePointer) {
        self.handle = handle
        self.database = database
    }

    /// Moves to the next row; false at the end.
    package func step() throws(SQLiteError) -> Bool {
        switch Self.step(handle) {
        case SQLITE_ROW: true
        case SQLITE_DONE: false
        case let code: throw stepFailure(code)
        }
    }

    /// Does a step, and does it again if a writer has made the index of the log look torn.
    ///
    /// A connection that may not write there sees a change of the index as damage if the change ends between two looks.
    static func step(_ handle: OpaquePointer?) -> Int32 {
        var code = sqlite3_step(handle)
        var attempts = 0
        while code == tornIndex && attempts < 100 {
            sqlite3_reset(handle)
            code = sqlite3_step(handle)
            attempts += 1
        }
        return code
    }

    /// SQLITE_READONLY_RECOVERY.
    private static let tornIndex = SQLITE_READONLY | (1 << 8)

    /// Runs to the end, for statements whose rows are not needed.
    package func run() throws(SQLiteError) {
        while try step() {}
    }

    /// Ends a loan.
    @usableFromInline
    func takeBack() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    func failure(_ code: Int32) -> SQLiteError {
        SQLiteError(of: database, code, sql: sqlite3_sql(handle).map { String(cString: $0) })
    }

    /// The failure of a step.
    ///
    /// No row that was written is larger than SQLite allows, so one that is read or deleted is damaged.
    private func stepFailure(_ code: Int32) -> SQLiteError {
        let error = failure(code)
        let writes = sqlite3_stmt_readonly(handle) == 0 && error.sql?.hasPrefix("DELETE") != true
        guard .tooBig ~= error.code, !writes else { return error }
        return SQLiteError(code: .corrupt, message: "a row is larger than SQLite allows", sql: error.sql)
    }

    func check(_ code: Int32) throws(SQLiteError) {
        guard code == SQLITE_OK else { throw failure(code) }
    }
}

/// Generic methods are compiled where they are called, so that they are specialised there.
extension Connection {
    /// Lends the prepared form of `sql` to `body`, and resets it afterwards.
    @inlinable
    package mutating func with<R>(
        _ sql: SQL, _ body: (borrowing Statement) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        let statement = try lent(sql)
        defer { statement.takeBack() }
        do {
            return try body(statement)
        } catch {
            noteFailure(error)
            throw error
        }
    }

    @usableFromInline
    mutating func lent(_ sql: SQL) throws(SQLiteError) -> Statement {
        try requireTransaction()
        return Statement(handle: try prepared(sql), database: handle)
    }

    /// Runs `sql` once, with the parameters that `bind` sets.
    package mutating func run(
        _ sql: SQL, _ bind: (borrowing Statement) throws(SQLiteError) -> Void = { _ in }
    ) throws(SQLiteError) {
        try with(sql) { statement throws(SQLiteError) in
            try bind(statement)
            try statement.run()
        }
    }
}

/// The text of a statement that connections prepare once and keep.
///
/// Declare it as a `static let`; its place in a connection's table of prepared statements is its own for the life of
/// the process.
@usableFromInline
package final class SQL: Sendable {
    package let text: String
    let index: Int

    private static let count = Atomic(0)

    package init(_ text: String) {
        self.text = text
        index = SQL.count.add(1, ordering: .relaxed).oldValue
    }
}

/// Safety: SQLite reads lent bytes until they are bound again or the bindings are cleared. The calls that lend clear
/// them before the closure that owns the bytes ends. Other bytes are copied by SQLite.
extension Statement {
    package func bind(_ value: Int64, at index: Int32) throws(SQLiteError) {
        try check(sqlite3_bind_int64(handle, index, value))
    }

    package func bindNull(at index: Int32) throws(SQLiteError) {
        try check(sqlite3_bind_null(handle, index))
    }

    /// Binds a copy of the whole `text`: a NUL inside is a character like any other.
    package func bind(_ text: String, at index: Int32) throws(SQLiteError) {
        var text = text
        try check(text.withUTF8 { bindCopy(text: UnsafeRawBufferPointer($0), at: index) })
    }

    /// Binds a copy of `bytes` as text, whether or not they are UTF-8.
    package func bind(textBytes bytes: [UInt8], at index: Int32) throws(SQLiteError) {
        try check(bytes.withUnsafeBytes { bindCopy(text: $0, at: index) })
    }

    /// Binds a copy of `value`, whatever its type.
    package func bind(_ value: RawValue, at index: Int32) throws(SQLiteError) {
        switch value {
        case .null: try bindNull(at: index)
        case .integer(let number): try bind(number, at: index)
        case .text(let bytes): try bind(textBytes: bytes, at: index)
        case .blob(let bytes): try bind(bytes, at: index)
        }
    }

    private func bindCopy(text bytes: UnsafeRawBufferPointer, at index: Int32) -> Int32 {
        larder_bind_text_copy(handle, index, base(bytes).assumingMemoryBound(to: CChar.self), UInt64(bytes.count))
    }

    /// Binds a copy of `bytes`; an empty array is an empty blob, not NULL.
    package func bind(_ bytes: [UInt8], at index: Int32) throws(SQLiteError) {
        let code = bytes.withUnsafeBytes { larder_bind_blob_copy(handle, index, base($0), UInt64($0.count)) }
        try check(code)
    }

    /// Binds the blob `bytes` in place while `body` runs; afterwards the statement is reset and the parameter NULL.
    @inlinable
    package func binding<R>(
        blob bytes: UnsafeRawBufferPointer, at index: Int32, _ body: (borrowing Statement) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        try lend(blob: bytes, at: index)
        defer { takeBack(index) }
        return try body(self)
    }

    @usableFromInline
    func lend(blob: UnsafeRawBufferPointer, at index: Int32) throws(SQLiteError) {
        try check(larder_bind_blob_static(handle, index, base(blob), UInt64(blob.count)))
    }

    /// Releases lent memory before its owner may free it.
    @usableFromInline
    func takeBack(_ index: Int32) {
        sqlite3_reset(handle)
        sqlite3_bind_null(handle, index)
    }

    /// Returns the start of `bytes`, never nil: SQLite takes a nil pointer for NULL, whatever the length.
    ///
    /// Of an empty buffer it reads no byte, whatever its address.
    private func base(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawPointer {
        bytes.baseAddress ?? UnsafeRawPointer(handle)
    }
}

/// Safety: The memory of a column belongs to SQLite and is valid until the statement steps, resets or converts the
/// column. Buffers over it are only lent to a closure or copied before the statement moves on.
extension Statement {
    /// The type of a stored value; no column has real numbers, so one counts as NULL.
    package enum ColumnType: Sendable {
        case null, integer, text, blob
    }

    package func type(of column: Int32) -> ColumnType {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: .integer
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    package func int64(_ column: Int32) -> Int64 {
        sqlite3_column_int64(handle, column)
    }

    /// Returns the text, including a NUL inside; bytes that are not UTF-8 become U+FFFD.
    package func text(_ column: Int32) -> String {
        guard let start = sqlite3_column_text(handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Lends the bytes of a blob or a text where SQLite has them: valid until the next step.
    @inlinable
    package func withBytes<R, E: Error>(_ column: Int32, _ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R
    {
        try body(lent(column))
    }

    @usableFromInline
    func lent(_ column: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(handle, column)
        let count = Int(sqlite3_column_bytes(handle, column))
        return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
    }

    package func bytes(_ column: Int32) -> [UInt8] {
        withBytes(column) { Array($0) }
    }

    /// Copies of all values of the row.
    package var values: [RawValue] {
        (0..<sqlite3_column_count(handle)).map { column in
            switch type(of: column) {
            case .null: .null
            case .integer: .integer(int64(column))
            case .text: .text(bytes(column))
            case .blob: .blob(bytes(column))
            }
        }
    }
}
