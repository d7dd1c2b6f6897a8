internal import LarderLocks
internal import LarderStore

/// What the body of an update or a transaction works on: the writer, which this thread holds.
///
/// Its changes are made at once, and undone if the body throws.
struct TransactionScope {
    let state: WriterState
    let manager: CacheManager

    /// Throws if a cache belongs to another manager.
    func check<Key, Value>(_ cache: Cache<Key, Value>) throws(CacheError) {
        if cache.manager === manager { return }
        throw CacheError(
            .invalidConfiguration,
            "The cache \"\(cache.name)\" belongs to another manager than the transaction. Begin one on its own manager."
        )
    }

    /// Returns the row of a key and its value; nil if there is none that may be served.
    func current<Key, Value>(
        _ stored: StoredKey, in cache: Cache<Key, Value>
    ) throws(CacheError) -> (value: Value, header: EntryHeader)? {
        let row = try cache.throwing("read the value", stored) { () throws(StoreError) in
            try state.row(stored, of: cache.rows.declaration)
        }
        guard let row, row.header.end >= cache.rows.store.time.now() else { return nil }
        return (try cache.decode(row), row.header)
    }

    func put<Key, Value>(_ write: Cache<Key, Value>.Write, in cache: Cache<Key, Value>) throws(CacheError) {
        try run((.put([write.entry]), cache.applying([write])), "set the value", cache)
    }

    func remove<Key, Value>(_ key: Key, _ stored: StoredKey, in cache: Cache<Key, Value>) throws(CacheError) {
        try run(cache.removing([(key, stored)]), "remove the value", cache)
    }

    private func run<Key, Value>(
        _ request: (RowOperation, CacheRows.Apply), _ action: String, _ cache: Cache<Key, Value>
    ) throws(CacheError) {
        try cache.requireUnshared(action)
        // Reads keep nothing of a body that is seen in part.
        let copies = cache.copies
        state.duringBody(copies) {
            copies.beginChange(of: 2)
        } end: {
            copies.endChange(of: 2)
        }
        try cache.throwing(action) { () throws(StoreError) in
            do { try state.perform(request.0, on: cache.rows, apply: request.1) } catch { throw StoreError(any: error) }
        }
    }
}

extension CacheManager {
    /// Runs `body` while this thread holds the writer of the store.
    func transacting<R>(_ action: String, _ body: (TransactionScope) throws -> R) throws -> R {
        do {
            return try store.transaction { state in
                try body(TransactionScope(state: state, manager: self))
            }
        } catch let error as StoreError {
            throw CacheError(error, action)
        }
    }

    /// Runs `body` while a thread of the store holds the writer.
    func transacting<R: Sendable>(
        _ action: String, _ body: @escaping @Sendable (TransactionScope) throws -> R
    ) async throws -> R {
        do {
            return try await store.transaction { state in
                try body(TransactionScope(state: state, manager: self))
            }
        } catch let error as StoreError {
            throw CacheError(error, action)
        }
    }
}
