internal import LarderCSQLite

extension Statement {
    package func bind(_ value: Int64, at index: Int32) throws(SQLiteError) {
        try check(sqlite3_bind_int64(handle, index, value))
    }

    package func bind(_ value: Double, at index: Int32) throws(SQLiteError) {
        try check(sqlite3_bind_double(handle, index, value))
    }

    package func bindNull(at index: Int32) throws(SQLiteError) {
        try check(sqlite3_bind_null(handle, index))
    }

    /// Binds a copy of `text`, whole: a NUL inside is a character like others.
    package func bind(_ text: String, at index: Int32) throws(SQLiteError) {
        var text = text
        let code = text.withUTF8 { bytes in
            withBase(UnsafeRawBufferPointer(bytes)) {
                larder_bind_text_copy(handle, index, $0.assumingMemoryBound(to: CChar.self), UInt64(bytes.count))
            }
        }
        try check(code)
    }

    /// Binds a copy of `bytes`; none are an empty blob, not NULL.
    package func bind(_ bytes: [UInt8], at index: Int32) throws(SQLiteError) {
        let code = bytes.withUnsafeBytes { bytes in
            withBase(bytes) { larder_bind_blob_copy(handle, index, $0, UInt64(bytes.count)) }
        }
        try check(code)
    }

    /// Binds `text` where it lies while `body` runs; afterwards the statement is reset and the parameter NULL.
    package func binding<R>(
        text: String, at index: Int32, _ body: (borrowing Statement) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        var text = text
        let result: Result<R, SQLiteError> = text.withUTF8 { bytes in
            withBase(UnsafeRawBufferPointer(bytes)) { base in
                scoped(index, body) {
                    larder_bind_text_static(
                        handle, index, base.assumingMemoryBound(to: CChar.self), UInt64(bytes.count))
                }
            }
        }
        return try result.get()
    }

    /// Binds the blob `bytes` where it lies while `body` runs; afterwards the statement is reset and the parameter NULL.
    package func binding<R>(
        blob bytes: UnsafeRawBufferPointer, at index: Int32, _ body: (borrowing Statement) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        let result: Result<R, SQLiteError> = withBase(bytes) { base in
            scoped(index, body) { larder_bind_blob_static(handle, index, base, UInt64(bytes.count)) }
        }
        return try result.get()
    }

    /// Binds, runs `body`, and lets go of the memory again before its owner may.
    private func scoped<R>(
        _ index: Int32, _ body: (borrowing Statement) throws(SQLiteError) -> R, bind: () -> Int32
    ) -> Result<R, SQLiteError> {
        Result { () throws(SQLiteError) in
            try check(bind())
            defer {
                sqlite3_reset(handle)
                sqlite3_bind_null(handle, index)
            }
            return try body(self)
        }
    }

    /// A pointer for `bytes` that is never nil: SQLite takes a nil pointer for NULL, however long the value.
    private func withBase<R>(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawPointer) -> R) -> R {
        if let base = bytes.baseAddress { return body(base) }
        return withUnsafeBytes(of: UInt8(0)) { empty in
            // Never nil: the buffer is one byte long.
            body(empty.baseAddress ?? UnsafeRawPointer(handle))
        }
    }
}
