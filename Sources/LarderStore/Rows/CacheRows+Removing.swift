/// Removing many rows.
extension CacheRows {
    /// Removes the entries that have a tag, and returns their number.
    @discardableResult
    package func removeAll(tagged tag: String) throws(StoreError) -> Int {
        try store.writer.removeAll(tagged: tag, in: declaration)
    }

    /// Removes the entries whose keys are texts that begin so, and returns their number.
    package func removeAll(prefix: String) throws(StoreError) -> Int {
        try store.writer.removeAll(prefix: prefix, in: declaration)
    }

    /// Removes expired and least recently used entries until the cache is within limits, and returns their number.
    @discardableResult
    package func trim(to limits: Limits) throws(StoreError) -> Int {
        let now = store.time.now()
        return try store.writer.trim(declaration, to: limits, at: now)
    }

    /// Removes all entries, and returns when none of their bytes is left in the files of the store.
    ///
    /// - Parameters:
    ///   - progress: Called with the number of deleted rows after each batch, outside all locks.
    ///   - apply: Called when the entries are removed, as by ``run(_:apply:)-(_,_)``.
    package func erase(progress: (Int) -> Void = { _ in }, apply: Apply? = nil) throws(StoreError) {
        if store.isReadOnly { throw .readOnly }
        try store.upkeep.erase(progress) { () throws(StoreError) in try run(.clear, apply: apply) }
    }

    /// Removes rows that were not written since, and returns their number.
    package func remove(_ rows: [EntryHeader], _ cause: RemovedRow.Cause) throws(StoreError) -> Int {
        if rows.isEmpty { return 0 }
        return try store.writer.runBatch { state in
            guard let cache = state.incarnation(of: declaration) else { throw StoreError.superseded }
            var count = 0
            for row in rows where try state.remove(row, ifUnchangedIn: cache, cause) { count += 1 }
            return count
        }
    }
}
