public import Foundation
internal import LarderLocks
public import LarderStore

/// The attributes of an entry that is written.
@usableFromInline
struct EntryAttributes: Sendable {
    var cost: Int?
    var maxAge: MaxAge?
    var extendedData: Data?
    var tags: Set<String>
    /// Nil keeps the pin of an older entry.
    @usableFromInline var isPinned: Bool?
    /// The encoded value, if it is known.
    @usableFromInline var payload: Data?

    @usableFromInline
    init(
        cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data? = nil, tags: Set<String> = [],
        isPinned: Bool? = nil
    ) {
        (self.cost, self.maxAge, self.extendedData, self.tags) = (cost, maxAge, extendedData, tags)
        self.isPinned = isPinned
    }

    /// Returns what a row has of them, and the end of the entry alone.
    ///
    /// - Parameter subject: The key and the cache, for the message of an error.
    @usableFromInline
    func stored(
        at now: Int64, _ subject: @autoclosure () -> String
    ) throws(CacheError) -> (meta: RowMeta, end: Int64?) {
        var (meta, end) = (RowMeta(), Int64?.none)
        if let maxAge {
            try maxAge.requireNumber(subject())
            end = meta.setOwnAge(maxAge.rule, writtenAt: now)
        }
        meta.isPinned = isPinned ?? false
        meta.cost = cost.map { Int64(BoundedTable<Int, Int>.clamped($0)) }
        meta.extendedData = extendedData
        if !tags.isEmpty { meta.tags = Set(tags.map { CBORText.normalized($0) }).sorted() }
        return (meta, end)
    }
}

/// The write path: encode, then one request of the store, which brings memory up to date after its commit.
///
/// It is inlinable as the read path is.
extension Cache {
    /// A value on its way to a row and to memory.
    @usableFromInline
    struct Write: Sendable {
        @usableFromInline let entry: EntryWrite
        @usableFromInline let copy: NewCopy<Key, Value>

        @inlinable
        init(entry: EntryWrite, copy: NewCopy<Key, Value>) { (self.entry, self.copy) = (entry, copy) }
    }

    /// Encodes a value.
    @inlinable
    func write(_ value: Value, forKey key: Key, _ attributes: EntryAttributes = EntryAttributes()) throws(CacheError)
        -> Write
    {
        let (stored, now) = (try stored(key), rows.now())
        let (meta, end) = try attributes.stored(at: now, "key \(stored.name) of cache \"\(name)\"")
        return try write(
            value, forKey: key, stored, at: now, end, meta, keepsPin: attributes.isPinned == nil,
            payload: attributes.payload)
    }

    /// Encodes a value for an entry with these attributes.
    @inlinable
    func write(
        _ value: Value, forKey key: Key, _ stored: StoredKey, at now: Int64, _ end: Int64?, _ meta: RowMeta,
        keepsPin: Bool, payload: Data? = nil
    ) throws(CacheError) -> Write {
        let payload = if let payload { payload } else { try codec.encode(value, cache: name, key: stored.name) }
        let entry = EntryWrite(
            key: stored, payload: payload, writtenAt: now, expiresAt: end, meta: meta, keepsPin: keepsPin,
            label: payload.count > rows.inlineLimit ? label(stored) : nil)
        let hash = copies.seed.hash(key)
        return Write(
            entry: entry,
            copy: copy(of: value, key, hash, stored, payloadSize: payload.count, cost: meta.cost))
    }

    /// The readable part of the name of a key's file; nil for one that the key gives.
    @usableFromInline
    func label(_ stored: StoredKey) -> String? {
        fileName.flatMap { $0(stored.name) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Writes a value.
    @inlinable
    func run(_ write: Write) throws(CacheError) {
        try requireUnshared("set the value")
        let (copies, copy) = (shared.copies, write.copy)
        try rows.put([write.entry], "set the value") { copies.wrote(CollectionOfOne(copy), $0, &$1) }
    }

    /// Writes a value that memory does not keep.
    func runOnDisk(_ write: Write) throws(CacheError) {
        try requireUnshared("set the value")
        let (copies, copy) = (shared.copies, write.copy)
        try rows.put([write.entry], "set the value") { copies.wroteToDisk(copy.key, hash: copy.hash, $0, &$1) }
    }

    /// Writes values in one step.
    @inlinable
    func run(_ writes: [Write], _ action: String) throws(CacheError) {
        try requireUnshared(action)
        copies.beginChange(of: writes.count)
        defer { copies.endChange(of: writes.count) }
        try rows.put(writes.map { $0.entry }, action, applying(writes))
    }

    /// Writes values in one step, for a task.
    func run(_ writes: [Write], _ action: String) async throws {
        try requireUnshared(action)
        copies.beginChange(of: writes.count)
        defer { copies.endChange(of: writes.count) }
        let operation = RowOperation.put(writes.map { $0.entry })
        _ = try await throwing(action, writes.count == 1 ? writes[0].entry.key : nil) {
            try await rows.run(operation, apply: applying(writes))
        }
    }

    @inlinable
    func applying(_ writes: [Write]) -> CacheRows.Apply {
        let (copies, values) = (shared.copies, writes.map { $0.copy })
        return { copies.wrote(values, $0, &$1) }
    }

    // MARK: Other requests

    /// The request that removes keys.
    func removing(_ keys: [(key: Key, stored: StoredKey)]) throws(CacheError) -> (RowOperation, CacheRows.Apply) {
        try requireUnshared("remove the value")
        let copies = shared.copies
        let hashed = keys.map { (key: $0.key, stored: $0.stored, hash: copies.seed.hash($0.key)) }
        return (.remove(keys.map { $0.stored }), { copies.removed(hashed, $0, &$1) })
    }

    /// The request that removes a key, and returns its row.
    func taking(_ key: Key, _ stored: StoredKey) throws(CacheError) -> (RowOperation, CacheRows.Apply) {
        try requireUnshared("remove the value")
        let (copies, hash) = (shared.copies, copies.seed.hash(key))
        return (.take(stored), { copies.removed([(key, stored, hash)], $0, &$1) })
    }

    /// The request that changes attributes of an entry.
    func changing(
        _ key: Key, _ stored: StoredKey, _ change: AttributeChange
    ) -> (RowOperation, CacheRows.Apply) {
        let (copies, hash) = (shared.copies, copies.seed.hash(key))
        return (.change(stored, change, at: rows.store.time.now()), { copies.changed(key, hash: hash, $0, &$1) })
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
            if error.code == .superseded { rows.noteSuperseded() }
            throw CacheError(error, action, cache: name, key: key)
        }
    }
}

extension CacheRows {
    /// Writes entries in one step.
    @usableFromInline
    func put(_ entries: [EntryWrite], _ action: String, _ apply: @escaping Apply) throws(CacheError) {
        _ = try throwing(action, entries.count == 1 ? entries[0].key : nil) { () throws(StoreError) in
            try run(.put(entries), apply: apply)
        }
    }
}
