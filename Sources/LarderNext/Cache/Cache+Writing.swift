public import Foundation
internal import LarderStore

extension Cache {
    /// Writes the value of a key; nil removes it.
    ///
    /// What is left out resets what the entry had: its own age, cost, extended data and tags. Its pin stays. If the call
    /// throws, it has stored nothing. On a full disk it may have evicted entries before that; see
    /// ``CacheOptions/onFullDisk``.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cost: What the value counts against the cost limit of the memory tier; the size of its payload if nil. It is
    ///     stored: a value that comes back from the disk costs the same.
    ///   - maxAge: An age of the entry's own, in place of the cache's.
    ///   - extendedData: Bytes to store with the value. If nil, there are none; empty is not nil.
    ///   - tags: Words by which `removeAll(tagged:)` finds the entry.
    ///   - pinned: A Boolean value that indicates whether limits and trims leave the entry on disk; nil keeps a pin.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`, `.tooLarge`,
    ///   `.encodingFailed`, `.invalidConfiguration`.
    public func setValue(
        _ value: Value?, forKey key: Key, cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data? = nil,
        tags: Set<String> = [], pinned: Bool? = nil
    ) throws(CacheError) {
        guard let value else { return try remove(key) }
        let attributes = Attributes(
            cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags, isPinned: pinned)
        try run([write(value, forKey: key, attributes)], "set the value")
    }

    /// Writes the value of a key for a task; see the synchronous form.
    ///
    /// A task that is cancelled while the write waits throws `CancellationError`, and nothing has changed.
    public func setValue(
        _ value: Value?, forKey key: Key, cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data? = nil,
        tags: Set<String> = [], pinned: Bool? = nil
    ) async throws {
        guard let value else { return try await remove(key) }
        let attributes = Attributes(
            cost: cost, maxAge: maxAge, extendedData: extendedData, tags: tags, isPinned: pinned)
        try await run([write(value, forKey: key, attributes)], "set the value")
    }

    /// Writes values in one step: every reader sees all of them or none.
    ///
    /// - Parameter values: The keys with their values.
    /// - Throws: As ``setValue(_:forKey:cost:maxAge:extendedData:tags:pinned:)``.
    public func setValues(_ values: some Sequence<(Key, Value)>) throws(CacheError) {
        let writes = try writes(values)
        if !writes.isEmpty { try run(writes, "set values") }
    }

    /// Writes all values of a dictionary in one step.
    ///
    /// - Parameter values: The values.
    /// - Throws: As ``setValue(_:forKey:cost:maxAge:extendedData:tags:pinned:)``.
    public func setValues(_ values: [Key: Value]) throws(CacheError) {
        try setValues(values.lazy.map { ($0.key, $0.value) })
    }

    /// Writes values in one step, for a task; see the synchronous form.
    public func setValues(_ values: some Sequence<(Key, Value)>) async throws {
        let writes = try writes(values)
        if !writes.isEmpty { try await run(writes, "set values") }
    }

    /// Writes all values of a dictionary in one step, for a task; see the synchronous form.
    public func setValues(_ values: [Key: Value]) async throws {
        try await setValues(values.lazy.map { ($0.key, $0.value) })
    }

    private func writes(_ values: some Sequence<(Key, Value)>) throws(CacheError) -> [Write] {
        var writes: [Write] = []
        for (key, value) in values { writes.append(try write(value, forKey: key)) }
        return writes
    }

    // MARK: Attributes

    /// Stores other bytes with the value of a key, whose age goes on; nil removes them.
    ///
    /// Nothing changes if the key has no value.
    ///
    /// - Parameters:
    ///   - data: The bytes, or nil.
    ///   - key: The key.
    /// - Throws: As ``setValue(_:forKey:cost:maxAge:extendedData:tags:pinned:)``.
    public func setExtendedData(_ data: Data?, forKey key: Key) throws(CacheError) {
        _ = try change(key, .extendedData(data), "set the extended data")
    }

    /// Stores other bytes with the value of a key, for a task; see the synchronous form.
    public func setExtendedData(_ data: Data?, forKey key: Key) async throws {
        _ = try await change(key, .extendedData(data), "set the extended data")
    }

    /// Restarts the age of an entry without its value.
    ///
    /// The entry counts as written now. Its value, cost, extended data, tags and pin stay.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - maxAge: Another age of the entry's own from now on; nil leaves the one that it has.
    /// - Returns: A Boolean value that indicates whether there was an entry that has not expired.
    /// - Throws: As ``setValue(_:forKey:cost:maxAge:extendedData:tags:pinned:)``.
    @discardableResult
    public func touch(_ key: Key, maxAge: MaxAge? = nil) throws(CacheError) -> Bool {
        try change(key, touching(maxAge), "touch the entry")
    }

    /// Restarts the age of an entry without its value, for a task; see the synchronous form.
    @discardableResult
    public func touch(_ key: Key, maxAge: MaxAge? = nil) async throws -> Bool {
        try await change(key, touching(maxAge), "touch the entry")
    }

    /// Pins an entry or removes its pin, without its value.
    ///
    /// - Parameters:
    ///   - isPinned: A Boolean value that indicates whether limits and trims leave the entry on disk.
    ///   - key: The key.
    /// - Returns: A Boolean value that indicates whether there was an entry.
    /// - Throws: As ``setValue(_:forKey:cost:maxAge:extendedData:tags:pinned:)``.
    @discardableResult
    public func setPinned(_ isPinned: Bool, forKey key: Key) throws(CacheError) -> Bool {
        try change(key, .pin(isPinned), "pin the entry")
    }

    /// Pins an entry or removes its pin, for a task; see the synchronous form.
    @discardableResult
    public func setPinned(_ isPinned: Bool, forKey key: Key) async throws -> Bool {
        try await change(key, .pin(isPinned), "pin the entry")
    }

    private func touching(_ maxAge: MaxAge?) throws(CacheError) -> AttributeChange {
        try maxAge?.requireNumber("an entry of cache \"\(name)\"")
        return .touch(at: rows.store.time.now(), ownAge: maxAge?.storeRule)
    }

    private func change(_ key: Key, _ change: AttributeChange, _ action: String) throws(CacheError) -> Bool {
        let (stored, leftovers) = (try stored(key), Leftovers())
        return try !run(changing(key, stored, change, leftovers), action, stored).rows.isEmpty
    }

    private func change(_ key: Key, _ change: AttributeChange, _ action: String) async throws -> Bool {
        let (stored, leftovers) = (try stored(key), Leftovers())
        return try await !run(changing(key, stored, change, leftovers), action, stored).rows.isEmpty
    }

    // MARK: Removing

    /// Removes a key, and returns its value, if it had one that could be served.
    ///
    /// - Parameter key: The key.
    /// - Returns: The value that the key had.
    /// - Throws: As ``setValue(_:forKey:cost:maxAge:extendedData:tags:pinned:)``.
    @discardableResult
    public func removeValue(forKey key: Key) throws(CacheError) -> Value? {
        let (stored, leftovers) = (try stored(key), Leftovers())
        return value(of: try run(taking(key, stored, leftovers), "remove the value", stored).taken)
    }

    /// Removes a key, and returns its value, for a task; see the synchronous form.
    @discardableResult
    public func removeValue(forKey key: Key) async throws -> Value? {
        let (stored, leftovers) = (try stored(key), Leftovers())
        return value(of: try await run(taking(key, stored, leftovers), "remove the value", stored).taken)
    }

    /// Returns the value of a removed row, unless it has expired or does not decode.
    private func value(of row: StoredRow?) -> Value? {
        guard let row, row.facts.end >= rows.store.time.now() else { return nil }
        do throws(CacheError) {
            return try codec.decode(row.payload, cache: name, key: row.facts.key.name)
        } catch {
            shared.copies.count { $0.failures += 1 }
            manager.reporter.report(
                CacheEvent(.undecodable, cacheName: name, key: row.facts.key.name, message: error.message), .warning,
                error: error)
            return nil
        }
    }

    /// Removes a key without reading its value.
    ///
    /// - Parameter key: The key.
    /// - Throws: As ``setValue(_:forKey:cost:maxAge:extendedData:tags:pinned:)``.
    public func remove(_ key: Key) throws(CacheError) {
        let (stored, leftovers) = (try stored(key), Leftovers())
        _ = try run(removing([(key, stored)], leftovers), "remove the value", stored)
    }

    /// Removes a key without reading its value, for a task; see the synchronous form.
    public func remove(_ key: Key) async throws {
        let (stored, leftovers) = (try stored(key), Leftovers())
        _ = try await run(removing([(key, stored)], leftovers), "remove the value", stored)
    }

    /// Removes keys in one step; absent ones do not matter.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: As ``setValue(_:forKey:cost:maxAge:extendedData:tags:pinned:)``.
    public func removeValues(forKeys keys: some Sequence<Key>) throws(CacheError) {
        let (keys, changes) = (try pairs(keys), TransactionChanges())
        changes.begin(in: shared.copies)
        defer { changes.end() }
        if !keys.isEmpty { _ = try run(removing(keys, changes.leftovers), "remove values") }
    }

    /// Removes keys in one step, for a task; see the synchronous form.
    public func removeValues(forKeys keys: some Sequence<Key>) async throws {
        let (keys, changes) = (try pairs(keys), TransactionChanges())
        changes.begin(in: shared.copies)
        defer { changes.end() }
        if !keys.isEmpty { _ = try await run(removing(keys, changes.leftovers), "remove values") }
    }

    private func pairs(_ keys: some Sequence<Key>) throws(CacheError) -> [(key: Key, stored: StoredKey)] {
        var pairs: [(Key, StoredKey)] = []
        for key in keys { pairs.append((key, try stored(key))) }
        return pairs
    }

    /// Removes all entries, in one step.
    ///
    /// The handles of the cache stay good. The rows are deleted in the background.
    ///
    /// - Returns: The number of entries that there were, including expired ones.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`.
    @discardableResult
    public func removeAll() throws(CacheError) -> Int {
        let leftovers = Leftovers()
        return Int(try run(clearing(leftovers), "remove everything").cleared?.count ?? 0)
    }

    /// Removes all entries, in one step, for a task; see the synchronous form.
    @discardableResult
    public func removeAll() async throws -> Int {
        let leftovers = Leftovers()
        return Int(try await run(clearing(leftovers), "remove everything").cleared?.count ?? 0)
    }

    private func clearing(_ leftovers: Leftovers) -> (RowOperation, CacheRows.Apply) {
        let copies = shared.copies
        return (.clear, { _ in copies.cleared(leftovers) })
    }
}
