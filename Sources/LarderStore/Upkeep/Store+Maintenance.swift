internal import LarderSQLite

/// The result of a maintenance.
package struct MaintenanceReport: Hashable, Sendable {
    /// The rows that were expired, over a limit or of a retired generation, and the files that no row named.
    package var (expired, trimmed, reclaimed, orphans) = (0, 0, 0, 0)
    /// The bytes that the main file gave back.
    package var freedBytes: Int64 = 0
}

/// What is known of a cache.
package struct CacheFacts: Sendable {
    package let declaration: CacheDeclaration
    /// The entries that have not expired.
    package let count: Int64
    /// The bytes of all entries.
    package let size: Int64
    package let openedAt: Int64
}

extension Connection {
    fileprivate mutating func caches(at now: Int64, _ accesses: AccessBook) throws(SQLiteError) -> [CacheFacts] {
        var caches: [CacheFacts] = []
        for cache in try liveGenerations().values.sorted(by: { $0.cache.name < $1.cache.name }) {
            let totals = try count(of: cache, accesses)
            let count = now <= totals.firstEnd ? totals.totals.count : try count(at: now, in: cache, accesses)
            caches.append(
                CacheFacts(
                    declaration: cache.cache, count: count, size: totals.totals.size,
                    openedAt: try number(.openedAt, cache.id) ?? 0))
        }
        return caches
    }
}

extension Store {
    /// Does all upkeep now: afterwards nothing is left that was expired, over a limit or retired at its start.
    ///
    /// Files that no row names are deleted if they are an hour old.
    @discardableResult
    package func maintain() throws(StoreError) -> MaintenanceReport {
        if isReadOnly { throw .readOnly }
        return try upkeep.doChores(isWhole: true)
    }

    /// Sets the limits of the store, and holds them.
    package func setLimits(_ limits: StoreLimits) throws(StoreError) {
        try writer.retrying { _ throws(StoreError) in
            try writer.runBatch { if $0.storeLimits != limits { try $0.setLimits(limits) } }
        }
    }

    /// Stores the accesses, as far as the grain asks for it.
    package func flush() throws(StoreError) {
        if isReadOnly { throw .readOnly }
        let now = time.now()
        try writer.runBatch { state in
            state.now = now
            try state.storeAccesses()
        }
    }

    /// Removes all entries of all caches.
    package func removeAll() throws(StoreError) { try writer.runBatch { try $0.clearAll() } }

    /// Returns what is known of each cache, by name.
    package func caches() throws(StoreError) -> [CacheFacts] {
        let now = time.now()
        if isClosed { throw .closed }
        return try writer.retrying { database throws(StoreError) in
            guard let file = database.file else {
                return try writer.read { try $0.connection.caches(at: now, accesses) }
            }
            // Not over the writer, which a long body may hold.
            return try StoreError.translating {
                try writer.withOwnConnection {
                    var connection = try file.file.openReader(of: file)
                    return try connection.caches(at: now, accesses)
                }
            }
        }
    }

    /// Removes a cache, whose handles are superseded.
    ///
    /// - Returns: The number of caches that were opened or removed before, in the order of commits.
    package func removeCache(named name: String) throws(StoreError) -> Int {
        try writer.runBatch { state in
            try state.removeCache(named: name)
            return state.openingCount
        }
    }

    /// Removes the entries of all caches that have a tag, and returns their number.
    @discardableResult
    package func removeAll(tagged tag: String) throws(StoreError) -> Int {
        try writer.runBatch { try $0.removeTagged(tag, in: nil) }
    }
}

extension CacheRows {
    /// Sets the limits of the cache, for all its handles, and holds them.
    package func setLimits(_ limits: Limits) throws(StoreError) {
        let now = store.time.now()
        try store.writer.runBatch { state in
            state.now = now
            try state.set(limits, 0, of: declaration)
        }
    }

    /// Removes the entries that have a tag, and returns their number.
    @discardableResult
    package func removeAll(tagged tag: String) throws(StoreError) -> Int {
        try store.writer.runBatch { try $0.removeTagged(tag, in: declaration) }
    }

    /// Removes expired and least recently used entries until the cache is within limits, and returns their number.
    @discardableResult
    package func trim(to limits: Limits) throws(StoreError) -> Int {
        let now = store.time.now()
        return try store.writer.trim { state in
            state.now = now
            return try state.beginTrim(declaration, to: limits)
        }
    }

    /// Leaves expired entries for a time from soon on, for all handles: the longest time that any handle asked for.
    ///
    /// - Parameter whenKept: Called once that is committed, or the cache is superseded.
    /// - Returns: False if the store is suspended or closed.
    @discardableResult
    package func keepExpired(_ milliseconds: Int64, whenKept: @escaping @Sendable () -> Void = {}) -> Bool {
        store.writer.enqueue { [declaration] state in
            if state.generation(of: declaration) != nil { try state.set(nil, milliseconds, of: declaration) }
        } apply: { _, _ in
            whenKept()
        }
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
    package func remove(_ rows: [RowFacts], _ cause: RemovedRow.Cause) throws(StoreError) -> Int {
        if rows.isEmpty { return 0 }
        return try store.writer.runBatch { state in
            guard let cache = state.generation(of: declaration) else { throw StoreError.superseded }
            var count = 0
            for row in rows where try state.remove(row, ifUnchangedIn: cache, cause) { count += 1 }
            return count
        }
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
    package func attach(_ memory: any CacheMemory) {
        store.memories.attach(memory, to: declaration.identity)
        // The file may have been opened again in the meantime.
        memory.storeWasOpened(store.watch, isSameFile: true)
    }

    package func detach(_ memory: any CacheMemory) { store.memories.detach(memory, from: declaration.identity) }
}
