internal import Foundation
internal import LarderStore
internal import Synchronization

/// The attributes of an entry that is written.
struct EntryAttributes: Sendable {
    var cost: Int?
    var maxAge: MaxAge?
    var extendedData: Data?
    var tags: Set<String> = []
    /// Nil keeps the pin of an older entry.
    var isPinned: Bool?
}

/// The write path: encode, then one request of the store, which brings memory up to date after its commit.
extension Cache {
    /// A value on its way to a row and to memory.
    struct Write: Sendable {
        let entry: EntryWrite
        let copy: WrittenCopy<Key, Value>
    }

    /// Encodes a value.
    func write(_ value: Value, forKey key: Key, _ attributes: EntryAttributes = EntryAttributes()) throws(CacheError)
        -> Write
    {
        let stored = try stored(key)
        var meta = RowMeta()
        let now = rows.store.time.now()
        var end: Int64?
        if let age = attributes.maxAge {
            try age.requireNumber("key \(stored.name) of cache \"\(name)\"")
            end = meta.setOwnAge(age.storeRule, writtenAt: now)
        }
        meta.isPinned = attributes.isPinned ?? false
        meta.cost = attributes.cost.map { Int64(CopiesState<Key, Value>.Memory.clamped($0)) }
        meta.extendedData = attributes.extendedData
        meta.tags = Set(attributes.tags.map { CBORText.normalized($0) }).sorted()
        return try write(value, forKey: key, stored, at: now, end, meta, keepsPin: attributes.isPinned == nil)
    }

    /// Encodes a value for an entry with these attributes.
    func write(
        _ value: Value, forKey key: Key, _ stored: StoredKey, at now: Int64, _ end: Int64?, _ meta: RowMeta,
        keepsPin: Bool
    ) throws(CacheError) -> Write {
        let payload = try codec.encode(value, cache: name, key: stored.name)
        let entry = EntryWrite(
            key: stored, payload: payload, writtenAt: now, expiresAt: end, meta: meta, keepsPin: keepsPin,
            label: payload.count > rows.inlineLimit ? label(stored) : nil)
        let hash = shared.copies.seed.hash(key)
        return Write(
            entry: entry,
            copy: copy(of: value, key, hash, stored, payloadSize: payload.count, cost: meta.cost))
    }

    /// The readable part of the name of a key's file; nil for one that the key gives.
    private func label(_ stored: StoredKey) -> String? {
        fileName.flatMap { $0(stored.name) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Writes values in one step.
    func run(_ writes: [Write], _ action: String) throws(CacheError) {
        let changes = TransactionChanges()
        if writes.count > 1 { changes.begin(in: shared.copies) }
        defer { changes.end() }
        let operation = RowOperation.put(writes.map { $0.entry }, if: .always)
        _ = try throwing(action, writes.count == 1 ? writes[0].entry.key : nil) { () throws(StoreError) in
            try rows.run(operation, apply: applying(writes, changes.leftovers))
        }
        reportTooCostly(writes, changes.leftovers)
    }

    /// Writes values in one step, for a task.
    func run(_ writes: [Write], _ action: String) async throws {
        let changes = TransactionChanges()
        if writes.count > 1 { changes.begin(in: shared.copies) }
        defer { changes.end() }
        let operation = RowOperation.put(writes.map { $0.entry }, if: .always)
        _ = try await throwing(action, writes.count == 1 ? writes[0].entry.key : nil) {
            try await rows.run(operation, apply: applying(writes, changes.leftovers))
        }
        reportTooCostly(writes, changes.leftovers)
    }

    func applying(_ writes: [Write], _ leftovers: Leftovers) -> CacheRows.Apply {
        let (copies, values) = (shared.copies, writes.map { $0.copy })
        return { copies.wrote(values, $0, leftovers) }
    }

    /// Reports values that memory cannot keep, whatever is evicted.
    func reportTooCostly(_ writes: [Write], _ leftovers: Leftovers) {
        guard leftovers.isTooCostly else { return }
        for write in writes {
            let isKept = shared.copies.state.withLock {
                $0.memory.admits(cost: write.copy.cost, bytes: write.copy.bytes)
            }
            if isKept { continue }
            let event = CacheEvent(
                .limitReached, cacheName: name, key: write.entry.key.name,
                message: "A value of the cache \"\(name)\" takes more than all of memory may. It is on disk only.")
            manager.reporter.report(event, .info)
        }
    }

    // MARK: Other requests

    /// The request that removes keys.
    func removing(_ keys: [(key: Key, stored: StoredKey)], _ leftovers: Leftovers) -> (RowOperation, CacheRows.Apply) {
        let copies = shared.copies
        let hashed = keys.map { (key: $0.key, stored: $0.stored, hash: copies.seed.hash($0.key)) }
        return (.remove(keys.map { $0.stored }), { copies.removed(hashed, $0, leftovers) })
    }

    /// The request that removes a key, and returns its row.
    func taking(_ key: Key, _ stored: StoredKey, _ leftovers: Leftovers) -> (RowOperation, CacheRows.Apply) {
        let (copies, hash) = (shared.copies, shared.copies.seed.hash(key))
        return (.take(stored), { copies.removed([(key, stored, hash)], $0, leftovers) })
    }

    /// The request that changes attributes of an entry.
    func changing(
        _ key: Key, _ stored: StoredKey, _ change: AttributeChange, _ leftovers: Leftovers
    ) -> (RowOperation, CacheRows.Apply) {
        let (copies, hash) = (shared.copies, shared.copies.seed.hash(key))
        return (.change(stored, change, at: rows.store.time.now()), { copies.changed(key, hash: hash, $0, leftovers) })
    }

    /// Runs a request.
    func run(_ request: (RowOperation, CacheRows.Apply), _ action: String, _ key: StoredKey? = nil) throws(CacheError)
        -> Outcome
    {
        try throwing(action, key) { () throws(StoreError) in try rows.run(request.0, apply: request.1) }
    }

    /// Runs a request for a task.
    func run(_ request: (RowOperation, CacheRows.Apply), _ action: String, _ key: StoredKey? = nil) async throws
        -> Outcome
    {
        try await throwing(action, key) { try await rows.run(request.0, apply: request.1) }
    }

    /// Runs a call of the store for a task, and gives its failure the names of the cache and the key.
    func throwing<R>(_ action: String, _ key: StoredKey? = nil, _ body: () async throws -> R) async throws -> R {
        do { return try await body() } catch let error as StoreError {
            throw CacheError(error, action, cache: name, key: key)
        }
    }
}
