public import Foundation

/// The calls that do not block the caller's executor.
///
/// What memory knows is answered at once, and what is written is encoded by the caller's task. Everything else runs on
/// threads of the system's own; writes go to the queue that the synchronous forms use, so they share transactions. Work
/// that was accepted is finished, whoever still wants it.
///
/// At the top level of a `main.swift` the compiler takes the synchronous forms, with `await` or without: call the
/// asynchronous ones in a function.
extension Cache {
    /// Reads the value of a key; see the synchronous form.
    public func value(forKey key: Key) async throws(CacheError) -> Value? {
        if let value = hit(key) { return value }
        return try await offload { () throws(CacheError) in try self.valueTheLongWay(forKey: key) }
    }

    /// Reads the value of a key with everything that is stored beside it; see the synchronous form.
    public func entry(
        forKey key: Key, allowingExpired: Bool = false
    ) async throws(CacheError) -> CacheEntry<Key, Value>? {
        try await offload { () throws(CacheError) in try self.entry(forKey: key, allowingExpired: allowingExpired) }
    }

    /// What is known of a key's entry; see the synchronous form.
    public func metadata(forKey key: Key) async throws(CacheError) -> EntryMetadata? {
        try await offload { () throws(CacheError) in try self.metadata(forKey: key) }
    }

    /// The bytes that were stored beside a key's value; see the synchronous form.
    public func extendedData(forKey key: Key) async throws(CacheError) -> Data? {
        try await offload { () throws(CacheError) in try self.extendedData(forKey: key) }
    }

    /// Whether there is a usable value; see the synchronous form.
    public func contains(_ key: Key) async throws(CacheError) -> Bool {
        try await offload { () throws(CacheError) in try self.contains(key) }
    }

    /// The values of those keys that have one; see the synchronous form.
    public func values(forKeys keys: some Sequence<Key>) async throws(CacheError) -> [Key: Value] {
        let keys = Array(keys)
        return try await offload { () throws(CacheError) in try self.values(forKeys: keys) }
    }

    /// Every entry that is served now; see the synchronous form.
    public func snapshot() async throws(CacheError) -> [Key: Value] {
        try await offload { () throws(CacheError) in try self.snapshot() }
    }

    /// Writes the value of a key; see the synchronous form.
    @inlinable
    public func setValue(
        _ value: Value?, forKey key: Key, cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data? = nil,
        tags: Set<String> = [], pinned: Bool? = nil
    ) async throws(CacheError) {
        guard let value else { return try await remove(key) }
        try await beginWriting("set a value")
        defer { endWriting() }
        var write = try core.encoded(
            value, forKey: key, cost: cost, age: maxAge, extended: extendedData, isPinned: pinned, terms)
        if !tags.isEmpty { write.content.row.setTags(tags) }
        if core.isLarge(write, terms) { write = try await core.spilled([write], terms)[0] }
        try await core.put(write)
    }

    /// Writes many values in one step; see the synchronous form.
    public func setValues(_ values: some Sequence<(Key, Value)>) async throws(CacheError) {
        try await writing("set values") { () async throws(CacheError) in
            let writes = try await core.spilled(try encoded(values), terms)
            if writes.isEmpty { return }
            try await core.run(writes)
        }
    }

    /// Writes every value of a dictionary in one step; see the synchronous form.
    public func setValues(_ values: [Key: Value]) async throws(CacheError) {
        try await setValues(values.lazy.map { ($0.key, $0.value) })
    }

    /// Puts other bytes beside the value of a key; see the synchronous form.
    public func setExtendedData(_ data: Data?, forKey key: Key) async throws(CacheError) {
        try await writing("set extended data") { () async throws(CacheError) in
            let stored = try core.keyCodec.stored(key, cache: name)
            try await ledger.run(core.changeRequest(key, stored, terms, overtakesLoads: true) { $0.extended = data })
        }
    }

    /// Removes a key, and gives back the value that it had; see the synchronous form.
    @discardableResult
    public func removeValue(forKey key: Key) async throws(CacheError) -> Value? {
        try await offload { () throws(CacheError) in try self.removeValue(forKey: key) }
    }

    /// Removes a key without reading its value; see the synchronous form.
    public func remove(_ key: Key) async throws(CacheError) {
        try await writing("remove a value") { () async throws(CacheError) in
            let stored = try core.keyCodec.stored(key, cache: name)
            try await ledger.run(core.removeRequest([(key, stored)]))
        }
    }

    /// Removes many keys in one step; see the synchronous form.
    public func removeValues(forKeys keys: some Sequence<Key>) async throws(CacheError) {
        try await writing("remove values") { () async throws(CacheError) in
            let stored = try self.stored(keys)
            if stored.isEmpty { return }
            do throws(CacheError) {
                try await ledger.run(core.removeRequest(stored))
            } catch {
                // In steps, as the synchronous form does it.
                let count = try smaller(stored.count, after: error)
                try await offload { () throws(CacheError) in try self.remove(stored, by: count) }
            }
        }
    }

    /// Deletes every entry, in one step, without blocking the caller's executor.
    ///
    /// - Returns: The number of entries that there were, expired ones included.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`.
    @discardableResult
    public func removeAll() async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeAll() }
    }

    /// Deletes the entries that a predicate picks, each unless it was written since the predicate saw it, without blocking the
    /// caller's executor.
    ///
    /// - Parameter shouldRemove: Called on another thread while no lock is held; may use the cache, and may throw.
    /// - Returns: The number of deleted entries.
    /// - Throws: What the predicate throws, or a ``CacheError``.
    @discardableResult
    public func removeAll(
        where shouldRemove: @escaping @Sendable (CacheEntry<Key, Value>) throws -> Bool
    ) async throws -> Int {
        try await offload { try self.removeAll(where: shouldRemove) }
    }

    /// Deletes the entries that a predicate picks by their key and metadata, without blocking the caller's executor; no value is
    /// read.
    ///
    /// - Parameter shouldRemove: Called on another thread while no lock is held; may use the cache, and may throw.
    /// - Returns: The number of deleted entries.
    /// - Throws: What the predicate throws, or a ``CacheError``.
    @discardableResult
    public func removeAll(
        whereMetadata shouldRemove: @escaping @Sendable (Key, EntryMetadata) throws -> Bool
    ) async throws -> Int {
        try await offload { try self.removeAll(whereMetadata: shouldRemove) }
    }

    /// Deletes every entry, and returns when no byte of them is left in the files of the store, without blocking the caller's
    /// executor.
    ///
    /// - Parameter progress: Called after each batch with the number of rows that are deleted; for an empty cache called once.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`.
    public func clear(progress: ProgressHandler? = nil) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.clear(progress: progress) }
    }

    /// Restarts the age of an entry without its value, without blocking the caller's executor.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - maxAge: An age of the entry's own from now on; nil leaves the one that it has.
    /// - Returns: Whether there was an entry.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`, `.invalidConfiguration`.
    @discardableResult
    public func touch(_ key: Key, maxAge: MaxAge? = nil) async throws(CacheError) -> Bool {
        try await offload { () throws(CacheError) in try self.touch(key, maxAge: maxAge) }
    }

    /// Pins an entry or takes its pin away, without its value and without blocking the caller's executor.
    ///
    /// - Parameters:
    ///   - isPinned: Whether limits and trims leave the entry on disk.
    ///   - key: The key.
    /// - Returns: Whether there was an entry.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`.
    @discardableResult
    public func setPinned(_ isPinned: Bool, forKey key: Key) async throws(CacheError) -> Bool {
        try await offload { () throws(CacheError) in try self.setPinned(isPinned, forKey: key) }
    }

    /// Changes the value of a key in one step, without blocking the caller's executor: no other thread of this process writes the
    /// key between the read and the write.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - body: Called exactly once, on another thread, while the key is held. It finds nil if there is no usable value, and
    ///     removes the entry by setting nil.
    /// - Returns: What the body returns.
    /// - Throws: What the body throws, or a ``CacheError``; then nothing has changed.
    @discardableResult
    public func update<R: Sendable>(
        _ key: Key, _ body: @escaping @Sendable (inout Value?) throws -> R
    ) async throws -> R {
        try await offload { try self.update(key, body) }
    }

    /// Returns the file of a key's payload, without blocking the caller's executor; nil if the payload is in its row, or if there is
    /// no usable value.
    ///
    /// Asking for it counts as access. The file is there until the key is written or removed.
    ///
    /// - Parameter key: The key.
    /// - Throws: `.closed`, `.busy`, `.corrupt`, `.storageUnavailable`.
    public func fileURL(forKey key: Key) async throws(CacheError) -> URL? {
        try await offload { () throws(CacheError) in try self.fileURL(forKey: key) }
    }

    /// Removes every entry that is over; see the synchronous form.
    @discardableResult
    public func removeExpired() async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.removeExpired() }
    }

    /// Removes what is over, then the least recently used, down to a number; see the synchronous form.
    @discardableResult
    public func trim(toCount count: Int) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.trim(toCount: count) }
    }

    /// Removes what is over, then the least recently used, down to a size; see the synchronous form.
    @discardableResult
    public func trim(toSize size: Int64) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.trim(toSize: size) }
    }

    /// Runs a write of a task's, once there is room for it.
    private func writing(_ action: String, _ body: () async throws(CacheError) -> Void) async throws(CacheError) {
        try await beginWriting(action)
        defer { endWriting() }
        try await body()
    }

    /// Waits until there is room for a write of a task's.
    @usableFromInline
    func beginWriting(_ action: String) async throws(CacheError) {
        try checkWritable(action)
        await ledger.store.queue.room.enter()
    }

    @usableFromInline
    func endWriting() { ledger.store.queue.room.leave() }
}
