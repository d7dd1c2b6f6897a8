public import Foundation
internal import LarderSQLite
internal import Synchronization

/// Several reads and writes as one step, over any of a manager's sub-caches; see `transaction(_:)`.
public struct CacheTransaction: ~Copyable {
    private let staging: TransactionStaging

    init(_ staging: TransactionStaging) {
        self.staging = staging
    }

    /// Reads the value of a key as the transaction has left it so far.
    public func value<Key, Value>(forKey key: Key, in cache: Cache<Key, Value>) throws(CacheError) -> Value? {
        try staging.check(cache, forWriting: false)
        let stored = try cache.core.keyCodec.stored(key, cache: cache.name)
        if let staged = staging.staged(cache.ledger, stored) {
            // Taken apart first: a removal is no value of an optional type.
            guard let value = staged.value else { return nil }
            return value as? Value
        }
        let current = try cache.core.current(key, stored, cache.terms, throwing: true)
        if let row = current.row { cache.core.noteUse(of: key, stored, row.facts, at: cache.terms.now()) }
        return current.value
    }

    /// Writes the value of a key when the transaction ends; nil removes it.
    ///
    /// The parameters are those of `Cache.setValue(_:forKey:cost:maxAge:extendedData:tags:pinned:)`.
    public func setValue<Key, Value>(
        _ value: Value?, forKey key: Key, in cache: Cache<Key, Value>, cost: Int? = nil, maxAge: MaxAge? = nil,
        extendedData: Data? = nil, tags: Set<String> = [], pinned: Bool? = nil
    ) throws(CacheError) {
        guard let value else { return try removeValue(forKey: key, in: cache) }
        try staging.check(cache, forWriting: true)
        var prepared = try cache.core.prepare(
            value, forKey: key, cost: cost, age: maxAge, extended: extendedData, isPinned: pinned, cache.terms)
        prepared.content.row.setTags(tags)
        let write = prepared
        staging.stage(
            cache.ledger, write.stored, value: value,
            StagedWrite(request: cache.core.stagedSet(write), spilled: write.content.spilled))
    }

    /// Removes a key when the transaction ends.
    public func removeValue<Key, Value>(forKey key: Key, in cache: Cache<Key, Value>) throws(CacheError) {
        try staging.check(cache, forWriting: true)
        let stored = try cache.core.keyCodec.stored(key, cache: cache.name)
        staging.stage(
            cache.ledger, stored, value: Optional<Value>.none,
            StagedWrite(request: cache.core.stagedRemoval(key, stored)))
    }
}

/// A write that the end of a transaction does.
struct StagedWrite: Sendable {
    let request: WriteRequest
    /// The file that was written ahead of it.
    var spilled: SpilledPayload?
}

/// What the body of a transaction wants written.
final class TransactionStaging: Sendable {
    struct Staged: Sendable {
        let value: (any Sendable)?
    }

    private struct State {
        var values: [HeldKey: Staged] = [:]
        var writes: [StagedWrite] = []
        var isOver = false
    }

    private let store: Store
    private let state = Mutex(State())

    init(_ store: Store) {
        self.store = store
    }

    /// Throws where a handle does not belong to the store, or its manager may not do this itself.
    ///
    /// That need not be the manager of the transaction: several may share the store.
    func check<Key, Value>(_ cache: Cache<Key, Value>, forWriting isWriting: Bool) throws(CacheError) {
        guard cache.ledger.store === store else {
            throw CacheError(
                .invalidConfiguration,
                "Cache \"\(cache.name)\" belongs to another store than the transaction; begin one on its own manager.")
        }
        _ = isWriting ? try cache.manager.writableStore() : try cache.manager.store()
        if cache.ledger.isSuperseded { throw cache.ledger.supersededError }
    }

    func staged(_ ledger: RowLedger, _ key: StoredKey) -> Staged? {
        state.withLock { $0.values[HeldKey(ledger.identity, key)] }
    }

    func stage(_ ledger: RowLedger, _ key: StoredKey, value: (any Sendable)?, _ write: StagedWrite) {
        state.withLock { state in
            state.values[HeldKey(ledger.identity, key)] = Staged(value: value)
            state.writes.append(write)
        }
    }

    var writes: [StagedWrite] { state.withLock { $0.writes } }
}

extension CacheManager {
    /// Does several reads and writes in one step: all or nothing, in both tiers, also towards other processes.
    ///
    /// The body is called exactly once and holds the writing side of the store meanwhile; when it throws, nothing has
    /// changed. What it reads and writes through the transaction counts; a plain read sees the state before the body, and a
    /// plain write from inside it, on its thread, throws ``CacheError/Code/reentrant``.
    @discardableResult
    public func transaction<R>(_ body: (borrowing CacheTransaction) throws -> R) throws -> R {
        let store = try writableStore()
        try store.inside.refuseCurrent("begin a transaction")
        let staging = TransactionStaging(store)
        let result = Result { try store.holdingEverything { try store.exclusively(staging, body) } }
        store.tellUntold()
        // What the writes displaced is released from here on, where nothing is held any more.
        switch result {
        case .success: for write in staging.writes { write.request.ledger?.settle(write.request) }
        case .failure: for write in staging.writes { write.spilled?.discard() }
        }
        _ = consume staging
        return try result.get()
    }
}

extension Store {
    /// Runs `body` while nobody else in this process writes.
    fileprivate func holdingEverything<R>(_ body: () throws -> R) throws -> R {
        queue.hold(.everything, self)
        defer { queue.release(.everything, self) }
        return try inside.enter(body)
    }

    /// Runs `body` once, with other processes kept from writing, and then what it has staged, in the same transaction.
    fileprivate func exclusively<R>(
        _ staging: TransactionStaging, _ body: (borrowing CacheTransaction) throws -> R
    ) throws -> R {
        let turn = try beginExclusive()
        let result: R
        do {
            result = try body(CacheTransaction(staging))
        } catch {
            turn?.abandonExclusive()
            throw error
        }
        let refusal = Mutex<CacheError?>(nil)
        // From here on the disk answers for all of it, in which it changes at one moment.
        let requests = staging.writes.map(\.request)
        for request in requests { request.mark() }
        defer { for request in requests { request.unmark() } }
        do throws(CacheError) {
            let adds = requests.contains { $0.operation.pages > 0 }
            try finishExclusive(turn, adding: adds ? .max : 0) { (connection, context) throws(SQLiteError) in
                for request in requests {
                    do throws(WriteFailure) {
                        try request.perform(&connection, context)
                    } catch {
                        switch error {
                        case .database(let error): throw error
                        case .refused(let error):
                            refusal.withLock { $0 = error }
                            throw SQLiteError(code: .misuse, message: error.message)
                        }
                    }
                }
            }
        } catch {
            throw refusal.withLock { $0 } ?? error
        }
        for request in requests { request.apply() }
        keepLogShort()
        return result
    }
}
