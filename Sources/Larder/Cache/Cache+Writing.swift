public import Foundation
internal import LarderStore

/// The writes.
///
/// If a task is cancelled while its write waits, the call throws `CancellationError` and nothing has changed.
extension Cache {
    /// Writes the value of a key; nil removes it.
    ///
    /// Parameters that are left out reset the entry's own age, cost, extended data and tags. The pin of an older entry
    /// stays. If the call throws, it has stored nothing. On a full disk it may have evicted entries before that; see
    /// ``CacheOptions/onFullDisk``.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cost: The cost of the value against the cost limit of the memory tier; if nil, the size of its payload. It
    ///     is stored with the entry, so a value that is read from the disk later costs the same.
    ///   - maxAge: The maximum age of this entry, in place of the cache's.
    ///   - extendedData: Bytes to store with the value. If nil, there are none; empty is not nil.
    ///   - tags: The tags by which `removeAll(tagged:)` and `entries(tagged:)` find the entry.
    ///   - pinned: A Boolean value that indicates whether limits and trims leave the entry on disk; nil keeps the pin
    ///     of an older entry.
    /// - Throws: A write error, see ``CacheError``. `.invalidConfiguration` for a maximum age from not-a-number.
    @inlinable
    public func setValue(
        _ value: Value?, forKey key: Key, cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data? = nil,
        tags: Set<String> = [], pinned: Bool? = nil
    ) throws(CacheError) {
        guard let value else { return try remove(key) }
        let attributes = EntryAttributes(
            cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags, isPinned: pinned)
        try run(write(value, forKey: key, attributes))
    }

    /// Writes the value of a key; nil removes it.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cost: The cost of the value against the cost limit of the memory tier; if nil, the size of its payload. It
    ///     is stored with the entry, so a value that is read from the disk later costs the same.
    ///   - maxAge: The maximum age of this entry, in place of the cache's.
    ///   - extendedData: Bytes to store with the value. If nil, there are none; empty is not nil.
    ///   - tags: The tags by which `removeAll(tagged:)` and `entries(tagged:)` find the entry.
    ///   - pinned: A Boolean value that indicates whether limits and trims leave the entry on disk; nil keeps the pin
    ///     of an older entry.
    /// - Throws: A write error, see ``CacheError``. `.invalidConfiguration` for a maximum age from not-a-number.
    public func setValue(
        _ value: Value?, forKey key: Key, cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data? = nil,
        tags: Set<String> = [], pinned: Bool? = nil
    ) async throws {
        guard let value else { return try await remove(key) }
        let attributes = EntryAttributes(
            cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags, isPinned: pinned)
        try await run([write(value, forKey: key, attributes)], "set the value")
    }

    /// Writes values in one step: every reader sees all of them or none.
    ///
    /// Each entry loses its own age, cost, extended data and tags, and keeps its pin.
    ///
    /// - Parameter values: The keys with their values.
    /// - Throws: A write error, see ``CacheError``.
    @inlinable
    public func setValues(_ values: some Sequence<(Key, Value)>) throws(CacheError) {
        let writes = try writes(values)
        if !writes.isEmpty { try run(writes, "set values") }
    }

    /// Writes all values of a dictionary in one step: every reader sees all of them or none.
    ///
    /// Each entry loses its own age, cost, extended data and tags, and keeps its pin.
    ///
    /// - Parameter values: The values by key.
    /// - Throws: A write error, see ``CacheError``.
    @inlinable
    public func setValues(_ values: [Key: Value]) throws(CacheError) {
        try setValues(values.lazy.map { ($0.key, $0.value) })
    }

    /// Writes values in one step: every reader sees all of them or none.
    ///
    /// - Parameter values: The keys with their values.
    /// - Throws: A write error, see ``CacheError``.
    public func setValues(_ values: some Sequence<(Key, Value)>) async throws {
        let writes = try writes(values)
        if !writes.isEmpty { try await run(writes, "set values") }
    }

    /// Writes all values of a dictionary in one step: every reader sees all of them or none.
    ///
    /// - Parameter values: The keys with their values.
    /// - Throws: A write error, see ``CacheError``.
    public func setValues(_ values: [Key: Value]) async throws {
        try await setValues(values.lazy.map { ($0.key, $0.value) })
    }

    @inlinable
    func writes(_ values: some Sequence<(Key, Value)>) throws(CacheError) -> [Write] {
        var writes: [Write] = []
        for (key, value) in values { writes.append(try write(value, forKey: key)) }
        return writes
    }

    // MARK: Attributes

    /// Replaces the bytes that are stored with the value of a key; nil removes them.
    ///
    /// The entry keeps its age. If the key has no value that may be served, nothing changes.
    ///
    /// - Parameters:
    ///   - data: The bytes, or nil.
    ///   - key: The key.
    /// - Throws: A write error, see ``CacheError``.
    public func setExtendedData(_ data: Data?, forKey key: Key) throws(CacheError) {
        _ = try change(key, .extendedData(data), "set the extended data")
    }

    /// Replaces the bytes that are stored with the value of a key; nil removes them.
    ///
    /// - Parameters:
    ///   - data: The bytes, or nil.
    ///   - key: The key.
    /// - Throws: A write error, see ``CacheError``.
    public func setExtendedData(_ data: Data?, forKey key: Key) async throws {
        _ = try await change(key, .extendedData(data), "set the extended data")
    }

    /// Restarts the age of an entry, as if it were written now, without reading or writing its value.
    ///
    /// Cost, extended data, tags and pin stay.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - maxAge: A new maximum age for this entry; nil leaves the age that it has.
    /// - Returns: A Boolean value that indicates whether there was an entry that had not expired.
    /// - Throws: A write error, see ``CacheError``. `.invalidConfiguration` for a maximum age from not-a-number.
    @discardableResult
    public func touch(_ key: Key, maxAge: MaxAge? = nil) throws(CacheError) -> Bool {
        try change(key, touching(maxAge), "touch the entry")
    }

    /// Restarts the age of an entry, as if it were written now, without reading or writing its value.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - maxAge: A new maximum age for this entry; nil leaves the age that it has.
    /// - Returns: A Boolean value that indicates whether there was an entry that had not expired.
    /// - Throws: A write error, see ``CacheError``. `.invalidConfiguration` for a maximum age from not-a-number.
    @discardableResult
    public func touch(_ key: Key, maxAge: MaxAge? = nil) async throws -> Bool {
        try await change(key, touching(maxAge), "touch the entry")
    }

    /// Pins an entry or removes its pin, without reading or writing its value.
    ///
    /// - Parameters:
    ///   - isPinned: A Boolean value that indicates whether limits and trims leave the entry on disk.
    ///   - key: The key.
    /// - Returns: A Boolean value that indicates whether there was an entry that had not expired.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func setPinned(_ isPinned: Bool, forKey key: Key) throws(CacheError) -> Bool {
        try change(key, .pin(isPinned), "pin the entry")
    }

    /// Pins an entry or removes its pin: limits and trims leave a pinned entry on disk.
    ///
    /// - Parameters:
    ///   - isPinned: A Boolean value that indicates whether limits and trims leave the entry on disk.
    ///   - key: The key.
    /// - Returns: A Boolean value that indicates whether there was an entry that had not expired.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func setPinned(_ isPinned: Bool, forKey key: Key) async throws -> Bool {
        try await change(key, .pin(isPinned), "pin the entry")
    }

    private func touching(_ maxAge: MaxAge?) throws(CacheError) -> AttributeChange {
        try maxAge?.requireNumber("an entry of cache \"\(name)\"")
        return .touch(at: rows.store.time.now(), ownAge: maxAge?.rule)
    }

    private func change(_ key: Key, _ change: AttributeChange, _ action: String) throws(CacheError) -> Bool {
        try requireUnshared(action)
        let stored = try stored(key)
        return try !run(changing(key, stored, change), action, stored).rows.isEmpty
    }

    private func change(_ key: Key, _ change: AttributeChange, _ action: String) async throws -> Bool {
        try requireUnshared(action)
        let stored = try stored(key)
        return try await !run(changing(key, stored, change), action, stored).rows.isEmpty
    }

    // MARK: Removing

    /// Removes a key, and returns the value that it had; nil if there was none that could be served.
    ///
    /// If the value does not decode, it is removed too, and an event reports it.
    ///
    /// - Parameter key: The key.
    /// - Returns: The value that the key had.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeValue(forKey key: Key) throws(CacheError) -> Value? {
        let stored = try stored(key)
        return value(of: try run(taking(key, stored), "remove the value", stored).taken)
    }

    /// Removes a key, and returns the value that it had; nil if there was none that could be served.
    ///
    /// - Parameter key: The key.
    /// - Returns: The value that the key had.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeValue(forKey key: Key) async throws -> Value? {
        let stored = try stored(key)
        return value(of: try await run(taking(key, stored), "remove the value", stored).taken)
    }

    /// Returns the value of a removed row, unless it has expired or does not decode.
    private func value(of row: StoredRow?) -> Value? {
        guard let row, row.header.end >= rows.store.time.now() else { return nil }
        do throws(CacheError) {
            return try codec.decode(row.payload, cache: name, key: row.header.key.name)
        } catch {
            copies.count { $0.failures += 1 }
            manager.reporter.report(
                CacheEvent(.undecodable, cacheName: name, key: row.header.key.name, message: error.message), .warning,
                error: error)
            return nil
        }
    }

    /// Removes a key without reading its value.
    ///
    /// - Parameter key: The key.
    /// - Throws: A write error, see ``CacheError``.
    public func remove(_ key: Key) throws(CacheError) {
        let stored = try stored(key)
        _ = try run(removing([(key, stored)]), "remove the value", stored)
    }

    /// Removes a key without reading its value.
    ///
    /// - Parameter key: The key.
    /// - Throws: A write error, see ``CacheError``.
    public func remove(_ key: Key) async throws {
        let stored = try stored(key)
        _ = try await run(removing([(key, stored)]), "remove the value", stored)
    }

    /// Removes keys in one step; absent keys are skipped.
    ///
    /// - Parameter keys: The keys.
    /// - Returns: The number of entries that there were, expired ones included.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeValues(forKeys keys: some Sequence<Key>) throws(CacheError) -> Int {
        let keys = try pairs(keys)
        copies.beginChange(of: keys.count)
        defer { copies.endChange(of: keys.count) }
        return keys.isEmpty ? 0 : try run(removing(keys), "remove values").rows.count
    }

    /// Removes keys in one step; absent keys are skipped.
    ///
    /// - Parameter keys: The keys.
    /// - Returns: The number of entries that there were, expired ones included.
    /// - Throws: A write error, see ``CacheError``.
    @discardableResult
    public func removeValues(forKeys keys: some Sequence<Key>) async throws -> Int {
        let keys = try pairs(keys)
        copies.beginChange(of: keys.count)
        defer { copies.endChange(of: keys.count) }
        return keys.isEmpty ? 0 : try await run(removing(keys), "remove values").rows.count
    }

    func pairs(_ keys: some Sequence<Key>) throws(CacheError) -> [(key: Key, stored: StoredKey)] {
        var pairs: [(Key, StoredKey)] = []
        for key in keys { pairs.append((key, try stored(key))) }
        return pairs
    }
}
