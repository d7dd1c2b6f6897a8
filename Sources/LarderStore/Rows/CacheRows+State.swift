internal import LarderSQLite

/// What holds for all handles of a cache, and the memory in front of it.
extension CacheRows {
    /// Sets the limits of the cache, for all its handles, and holds them.
    package func setLimits(_ limits: Limits) throws(StoreError) {
        let now = store.time.now()
        try store.writer.runBatch { state in
            state.now = now
            try state.set(limits, 0, of: declaration)
        }
    }

    /// Leaves expired entries for a time from soon on, for all handles: the longest time that any handle asked for.
    ///
    /// - Parameter whenKept: Called once that is committed, or the cache is superseded.
    /// - Returns: False if the store is suspended or closed.
    @discardableResult
    package func keepExpired(_ milliseconds: Int64, whenKept: @escaping @Sendable () -> Void = {}) -> Bool {
        store.writer.enqueue { [declaration] state in
            if state.incarnation(of: declaration) != nil { try state.set(nil, milliseconds, of: declaration) }
        } apply: { _, _ in
            whenKept()
        }
    }

    /// The notes of the cache by their numbers.
    ///
    /// A clear leaves them; they go with the cache and with its version.
    package func notes() throws(StoreError) -> [Int64: [UInt8]] {
        let found = try read { connection, cache throws(SQLiteError) in
            try connection.list(.notes, text: cache.cache.name) { (number: $0.int64(0), content: $0.bytes(1)) }
        }
        return (found ?? []).reduce(into: [:]) { $0[$1.number] = $1.content }
    }

    /// A Boolean value that indicates whether this thread runs the body of a transaction.
    package var isInBody: Bool { store.writer.isOwned }

    /// Throws unless the cache can be written to.
    package func requireWritable() throws(StoreError) {
        if store.isReadOnly { throw .readOnly }
        if store.isClosed { throw .closed }
        if store.writer.isOwned { throw .reentrant }
        try requireCurrent()
    }

    /// Throws if no live cache has the declaration.
    package func requireCurrent() throws(StoreError) {
        if try isSuperseded() { throw .superseded }
    }

    /// Connects the memory in front of the cache.
    ///
    /// It is kept until it is detached, so it must not keep the rows.
    package func attach(_ memory: any TierDelegate) {
        store.tiers.attach(memory, to: declaration.identity)
        // The file may have been opened again in the meantime.
        memory.storeWasOpened(store.watch, isSameFile: true)
    }

    package func detach(_ memory: any TierDelegate) { store.tiers.detach(memory, from: declaration.identity) }
}
