internal import LarderCSQLite

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
