public import Foundation
internal import LarderStore

/// Reads and writes of several keys in one step, over any of a manager's caches; see `transaction(_:)`.
public struct CacheTransaction: ~Copyable {
    private let scope: TransactionScope

    init(_ scope: TransactionScope) { self.scope = scope }

    /// Returns the value of a key with the changes of this transaction so far; nil if there is none that may be served.
    ///
    /// The read counts as access once the transaction is committed.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - cache: A cache of the transaction's manager.
    /// - Throws: A read error, see ``CacheError``. `.invalidConfiguration` for a cache of another manager.
    ///   `.undecodable` if the value is of another type.
    public func value<Key, Value>(forKey key: Key, in cache: Cache<Key, Value>) throws(CacheError) -> Value? {
        try scope.check(cache)
        guard let (value, header) = try scope.current(cache.stored(key), in: cache) else { return nil }
        let (now, hash) = (cache.rows.store.time.now(), cache.copies.seed.hash(key))
        // If the body throws, the revision that it has read may never be committed.
        scope.state.afterCommit { cache.noteAccess(to: key, hash, header, at: now) }
        return value
    }

    /// Writes the value of a key; nil removes it.
    ///
    /// Parameters that are left out reset the entry's own age, cost, extended data and tags. The pin of an older entry
    /// stays.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cache: A cache of the transaction's manager.
    ///   - cost: The cost of the value against the cost limit of the memory tier; if nil, the size of its payload.
    ///   - maxAge: The maximum age of this entry, in place of the cache's.
    ///   - extendedData: Bytes to store with the value. If nil, there are none; empty is not nil.
    ///   - tags: The tags by which `removeAll(tagged:)` and `entries(tagged:)` find the entry.
    ///   - pinned: A Boolean value that indicates whether limits and trims leave the entry on disk; nil keeps the pin
    ///     of an older entry.
    /// - Throws: A write error, see ``CacheError``. `.invalidConfiguration` for a cache of another manager or a
    ///   maximum age from not-a-number.
    public func setValue<Key, Value>(
        _ value: Value?, forKey key: Key, in cache: Cache<Key, Value>, cost: Int? = nil, maxAge: MaxAge? = nil,
        extendedData: Data? = nil, tags: Set<String> = [], pinned: Bool? = nil
    ) throws(CacheError) {
        guard let value else { return try removeValue(forKey: key, in: cache) }
        try scope.check(cache)
        let attributes = EntryAttributes(
            cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags, isPinned: pinned)
        try scope.put(cache.write(value, forKey: key, attributes), in: cache)
    }

    /// Removes a key.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - cache: A cache of the transaction's manager.
    /// - Throws: A write error, see ``CacheError``. `.invalidConfiguration` for a cache of another manager.
    public func removeValue<Key, Value>(forKey key: Key, in cache: Cache<Key, Value>) throws(CacheError) {
        try scope.check(cache)
        try scope.remove(key, cache.stored(key), in: cache)
    }
}

extension CacheManager {
    /// Runs reads and writes of several keys in one step: all or nothing, in both tiers and for other processes.
    ///
    /// The body is called once, and holds the writer of the store. If it throws, nothing has changed. Other writes
    /// wait, and reads of other threads see the state before.
    ///
    /// Plain reads inside the body see the state before too. In a store in memory, they throw
    /// ``CacheError/Code/reentrant`` unless the memory tier has the value. A plain write to the store inside the body
    /// throws ``CacheError/Code/reentrant``.
    ///
    /// To read several caches as of one moment, use a transaction too.
    ///
    /// - Parameter body: The reads and writes.
    /// - Returns: The result of the body.
    /// - Throws: The error of the body, or a write error, see ``CacheError``.
    @discardableResult
    public func transaction<R>(_ body: (borrowing CacheTransaction) throws -> R) throws -> R {
        try transacting("do the transaction") { try body(CacheTransaction($0)) }
    }

    /// Runs reads and writes of several keys in one step: all or nothing, in both tiers and for other processes.
    ///
    /// - Parameter body: The reads and writes.
    /// - Returns: The result of the body.
    /// - Throws: The error of the body, or a write error, see ``CacheError``.
    @discardableResult
    public func transaction<R: Sendable>(
        _ body: @escaping @Sendable (borrowing CacheTransaction) throws -> R
    ) async throws -> R {
        try await transacting("do the transaction") { try body(CacheTransaction($0)) }
    }
}

extension Cache {
    /// Changes the value of a key in one step.
    ///
    /// The body is called once, and holds the writer of the store, so no thread and no process writes in the meantime.
    /// It gets nil if there is no value that may be served or if the value does not decode. Setting nil removes the
    /// entry. If the body throws, nothing has changed.
    ///
    /// The entry's own age restarts, and the cost is reset. Extended data, tags and pin stay if the body got a value. A
    /// plain write to the store inside the body throws ``CacheError/Code/reentrant``.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - body: The change.
    /// - Returns: The result of the body.
    /// - Throws: The error of the body, or a write error, see ``CacheError``.
    @discardableResult
    public func update<R>(_ key: Key, _ body: (inout Value?) throws -> R) throws -> R {
        try manager.transacting("update the value") { try update(key, in: $0, body) }
    }

    /// Changes the value of a key in one step.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - body: The change.
    /// - Returns: The result of the body.
    /// - Throws: The error of the body, or a write error, see ``CacheError``.
    @discardableResult
    public func update<R: Sendable>(
        _ key: Key, _ body: @escaping @Sendable (inout Value?) throws -> R
    ) async throws -> R {
        try await manager.transacting("update the value") { try self.update(key, in: $0, body) }
    }

    private func update<R>(
        _ key: Key, in scope: TransactionScope, _ body: (inout Value?) throws -> R
    ) throws -> R {
        let stored = try stored(key)
        let old: (value: Value, header: EntryHeader)?
        do throws(CacheError) {
            old = try scope.current(stored, in: self)
        } catch {
            if error.code != .undecodable { throw error }
            old = nil
        }
        var value = old?.value
        let result = try body(&value)
        guard let value else {
            try scope.remove(key, stored, in: self)
            return result
        }
        let now = rows.store.time.now()
        var (meta, end) = (old?.header.meta ?? RowMeta(), old?.header.ownEnd(ifWrittenAt: now))
        meta.cost = nil
        try scope.put(write(value, forKey: key, stored, at: now, end, meta, keepsPin: false), in: self)
        return result
    }
}
