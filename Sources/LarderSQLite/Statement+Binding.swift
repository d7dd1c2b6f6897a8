internal import LarderCSQLite

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
