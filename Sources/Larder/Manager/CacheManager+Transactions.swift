public import Foundation
internal import LarderLocks
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
    /// Parameters that are left out reset the entry's own age, cost, extended data and tags, to what the rule of the cache
    /// gives if there is one. The pin of an older entry stays.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cache: A cache of the transaction's manager.
    ///   - cost: The cost of the value against the cost limit of memory; if nil, the size of its payload.
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
    /// Runs reads and writes of several keys in one step: all or nothing, in memory, on the disk and for other processes.
    ///
    /// The body is called once, and holds the writer of the store. If it throws, nothing has changed. Other writes
    /// wait, and reads of other threads see the state before.
    ///
    /// Plain reads inside the body see the state before too. In a store in memory, they throw
    /// ``CacheError/Code/reentrant`` unless memory has the value. A plain write to the store inside the body
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

    /// Runs reads and writes of several keys in one step: all or nothing, in memory, on the disk and for other processes.
    ///
    /// The body holds the writer of the store on a thread of its own. A plain write to the store inside it throws
    /// ``CacheError/Code/reentrant``.
    @discardableResult
    public func transaction<R: Sendable>(
        _ body: @escaping @Sendable (borrowing CacheTransaction) throws -> R
    ) async throws -> R {
        try await transacting("do the transaction") { try body(CacheTransaction($0)) }
    }
}

/// What the body of an update or a transaction works on: the writer, which this thread holds.
///
/// Its changes are made at once, and undone if the body throws.
struct TransactionScope {
    let state: WriterState
    let manager: CacheManager
    fileprivate let closed: ClosedMemory

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
        try run(cache.change(write), "set the value", cache)
    }

    func remove<Key, Value>(_ key: Key, _ stored: StoredKey, in cache: Cache<Key, Value>) throws(CacheError) {
        try run(cache.removal(of: [(key, stored)]), "remove the value", cache)
    }

    private func run<Key, Value>(
        _ change: Change, _ action: String, _ cache: Cache<Key, Value>
    ) throws(CacheError) {
        try cache.requireUnshared(action)
        closed.close(cache.copies)
        try cache.throwing(action) { () throws(StoreError) in
            do { try state.perform(change, on: cache.rows) } catch { throw StoreError(any: error) }
        }
    }
}

extension CacheManager {
    /// Runs `body` while this thread holds the writer of the store.
    func transacting<R>(_ action: String, _ body: (TransactionScope) throws -> R) throws -> R {
        let closed = ClosedMemory()
        defer { closed.open() }
        do {
            guard let trace = store.trace else {
                return try store.transaction { state in
                    try body(TransactionScope(state: state, manager: self, closed: closed))
                }
            }
            return try trace.following(action, nil, nil, .disk) { () throws in
                try store.transaction { state in
                    try body(TransactionScope(state: state, manager: self, closed: closed))
                }
            }
        } catch let error as StoreError {
            throw CacheError(error, action)
        }
    }

    /// Runs `body` while a thread of the store holds the writer.
    func transacting<R: Sendable>(
        _ action: String, _ body: @escaping @Sendable (TransactionScope) throws -> R
    ) async throws -> R {
        let closed = ClosedMemory()
        defer { closed.open() }
        do {
            guard let trace = store.trace else {
                return try await store.transaction { state in
                    try body(TransactionScope(state: state, manager: self, closed: closed))
                }
            }
            return try await trace.following(action, nil, nil, .disk) {
                try await store.transaction { state in
                    try body(TransactionScope(state: state, manager: self, closed: closed))
                }
            }
        } catch let error as StoreError {
            throw CacheError(error, action)
        }
    }
}

/// The memory tiers that keep nothing of what reads find while a body changes their rows: it would be seen in part.
///
/// They are opened after memory has taken in the whole body, or after it was undone.
private final class ClosedMemory: Sendable {
    private let openings = Mutex<[ObjectIdentifier: Opening]>([:])

    private struct Opening { let open: @Sendable () -> Void }

    /// Closes a tier, at the first change of its rows.
    func close<Key, Value>(_ copies: TierStorage<Key, Value>) {
        let isFirst = openings.withLock { openings in
            if openings[ObjectIdentifier(copies)] != nil { return false }
            openings[ObjectIdentifier(copies)] = Opening { copies.endChange(of: 2) }
            return true
        }
        if isFirst { copies.beginChange(of: 2) }
    }

    func open() { for opening in openings.withLock({ $0 }).values { opening.open() } }
}
