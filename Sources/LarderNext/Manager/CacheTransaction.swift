public import Foundation
internal import LarderStore

/// Reads and writes of several keys in one step, over any of a manager's caches; see `transaction(_:)`.
public struct CacheTransaction: ~Copyable {
    private let scope: TransactionScope

    init(_ scope: TransactionScope) { self.scope = scope }

    /// Returns the value of a key as the transaction has left it so far.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - cache: A cache of the transaction's manager.
    /// - Throws: `.invalidConfiguration` for a cache of another manager, `.undecodable`, `.encodingFailed`.
    public func value<Key, Value>(forKey key: Key, in cache: Cache<Key, Value>) throws(CacheError) -> Value? {
        try scope.check(cache)
        guard let (value, facts) = try scope.current(cache.stored(key), in: cache) else { return nil }
        let (now, hash) = (cache.rows.store.time.now(), cache.shared.copies.seed.hash(key))
        // Until the commit the row may be undone.
        scope.state.afterCommit { cache.noteAccess(to: key, hash, facts, at: now) }
        return value
    }

    /// Writes the value of a key; nil removes it.
    ///
    /// The parameters are those of `Cache.setValue(_:forKey:cost:maxAge:extendedData:tags:pinned:)`.
    public func setValue<Key, Value>(
        _ value: Value?, forKey key: Key, in cache: Cache<Key, Value>, cost: Int? = nil, maxAge: MaxAge? = nil,
        extendedData: Data? = nil, tags: Set<String> = [], pinned: Bool? = nil
    ) throws(CacheError) {
        guard let value else { return try removeValue(forKey: key, in: cache) }
        try scope.check(cache)
        let attributes = Cache<Key, Value>.Attributes(
            cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags, isPinned: pinned)
        try scope.put(cache.write(value, forKey: key, attributes), in: cache)
    }

    /// Removes a key.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - cache: A cache of the transaction's manager.
    /// - Throws: `.invalidConfiguration` for a cache of another manager, `.superseded`, `.encodingFailed`.
    public func removeValue<Key, Value>(forKey key: Key, in cache: Cache<Key, Value>) throws(CacheError) {
        try scope.check(cache)
        try scope.remove(key, cache.stored(key), in: cache)
    }
}

extension CacheManager {
    /// Does reads and writes of several keys in one step: all or nothing, in both tiers, also for other processes.
    ///
    /// The body is called once, and holds the writer of the store. If it throws, nothing has changed. Other writes wait,
    /// and reads of other threads see the state before. Plain reads inside the body see that state too, and a plain write to
    /// the store throws ``CacheError/Code/reentrant``. A reader that needs several caches as of one moment uses a
    /// transaction too.
    ///
    /// - Parameter body: The reads and writes.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws, or a ``CacheError``.
    @discardableResult
    public func transaction<R>(_ body: (borrowing CacheTransaction) throws -> R) throws -> R {
        try transacting("do the transaction") { try body(CacheTransaction($0)) }
    }

    /// Does reads and writes of several keys in one step, for a task; see the synchronous form.
    ///
    /// If the task is cancelled before the body has begun, the call throws `CancellationError`.
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
    /// The body is called once, and holds the writer of the store, so no thread and no process writes in the meantime. It
    /// gets nil if there is no value that may be served, and setting nil removes the entry. If it throws, nothing changes.
    /// The own age of the entry restarts; extended data, tags and pin stay, and the cost is reset. A plain write to the
    /// store from inside the body throws ``CacheError/Code/reentrant``.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - body: The change.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws, or a ``CacheError``.
    @discardableResult
    public func update<R>(_ key: Key, _ body: (inout Value?) throws -> R) throws -> R {
        try manager.transacting("update the value") { try update(key, in: $0, body) }
    }

    /// Changes the value of a key in one step, for a task; see the synchronous form.
    ///
    /// If the task is cancelled before the body has begun, the call throws `CancellationError`.
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
        let old: (value: Value, facts: RowFacts)?
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
        var (meta, end) = (old?.facts.meta ?? RowMeta(), old?.facts.ownEnd(ifWrittenAt: now))
        meta.cost = nil
        try scope.put(write(value, forKey: key, stored, at: now, end, meta, keepsPin: false), in: self)
        return result
    }
}
