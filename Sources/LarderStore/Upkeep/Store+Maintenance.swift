internal import LarderSQLite

/// The result of a maintenance.
package struct MaintenanceReport: Hashable, Sendable {
    /// The rows that were expired, over a limit or of a retired generation, and the files that no row named.
    package var (expired, trimmed, reclaimed, orphans) = (0, 0, 0, 0)
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
        try writer.runBatch { try $0.setLimits(limits) }
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
        try store.writer.runBatch { state in
            try state.change(declaration) { $0.limits = limits }
            state.forgetWaits()
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
        try store.writer.read { try $0.trim(declaration, to: limits) }
    }

    /// Leaves expired entries for a time, for all handles: the longest time that any handle asked for.
    package func keepExpired(_ milliseconds: Int64) throws(StoreError) {
        try store.writer.runBatch {
            try $0.change(declaration) { $0.keepsExpired = max($0.keepsExpired, milliseconds) }
        }
    }

    /// Removes all entries, and returns when none of their bytes is left in the files of the store.
    package func erase() throws(StoreError) {
        if store.isReadOnly { throw .readOnly }
        try store.upkeep.erase { () throws(StoreError) in try run(.clear) }
    }

    /// Connects the memory in front of the cache.
    ///
    /// It is kept until it is detached, so it must not keep the rows.
    package func attach(_ memory: any CacheMemory) { store.memories.attach(memory, to: declaration.name) }

    package func detach(_ memory: any CacheMemory) { store.memories.detach(memory, from: declaration.name) }
}
