public import Foundation
internal import LarderLocks
public import LarderStore

/// The writes.
///
/// If a task is cancelled while its write waits, the call throws `CancellationError` and nothing has changed.
extension Cache {
    /// Writes the value of a key; nil removes it.
    ///
    /// Parameters that are left out reset the entry's own age, cost, extended data and tags, to what the rule of the cache
    /// gives if there is one, see ``EntryAttributes``. The pin of an older entry stays. If the call throws, it has stored nothing. On a full disk it may have evicted entries before that; see
    /// ``CacheOptions/onFullDisk``.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cost: The cost of the value against the cost limit of memory; if nil, the size of its payload. It
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
    /// Each entry loses its own age, cost, extended data and tags, or gets those of the rule of the cache, and keeps its pin.
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
    /// Each entry loses its own age, cost, extended data and tags, or gets those of the rule of the cache, and keeps its pin.
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

    /// Replaces the bytes that are stored with the value of a key, if it has one that may be served; nil removes them.
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

    /// Restarts the age of an entry, and returns whether there was one that had not expired.
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

    /// Pins an entry or removes its pin, and returns whether there was one that had not expired.
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
        return try !rows.run(self.change(key, stored, change), action).rows.isEmpty
    }

    private func change(_ key: Key, _ change: AttributeChange, _ action: String) async throws -> Bool {
        try requireUnshared(action)
        let stored = try stored(key)
        return try await !rows.run(self.change(key, stored, change), action).rows.isEmpty
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
        return value(of: try rows.run(taking(key, stored), "remove the value").taken)
    }

    /// Removes a key, and returns the value that it had; nil if there was none that could be served.
    @discardableResult
    public func removeValue(forKey key: Key) async throws -> Value? {
        let stored = try stored(key)
        return value(of: try await rows.run(taking(key, stored), "remove the value").taken)
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
        _ = try rows.run(removal(of: [(key, stored)]), "remove the value")
    }

    /// Removes a key without reading its value.
    public func remove(_ key: Key) async throws {
        let stored = try stored(key)
        _ = try await rows.run(removal(of: [(key, stored)]), "remove the value")
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
        return keys.isEmpty ? 0 : try rows.run(removal(of: keys), "remove values").rows.count
    }

    /// Removes keys in one step; absent keys are skipped.
    @discardableResult
    public func removeValues(forKeys keys: some Sequence<Key>) async throws -> Int {
        let keys = try pairs(keys)
        copies.beginChange(of: keys.count)
        defer { copies.endChange(of: keys.count) }
        return keys.isEmpty ? 0 : try await rows.run(removal(of: keys), "remove values").rows.count
    }

    func pairs(_ keys: some Sequence<Key>) throws(CacheError) -> [(key: Key, stored: StoredKey)] {
        var pairs: [(Key, StoredKey)] = []
        for key in keys { pairs.append((key, try stored(key))) }
        return pairs
    }
}

extension Cache {
    /// Changes the value of a key in one step.
    ///
    /// The body is called once, and holds the writer of the store, so no thread and no process writes in the meantime.
    /// It gets nil if there is no value that may be served or if the value does not decode. Setting nil removes the
    /// entry. If the body throws, nothing has changed.
    ///
    /// The entry's own age restarts, and the cost is reset. Extended data, tags and pin stay if the body got a value. If
    /// the cache was opened with a rule, tags are what it gives for the new value. A plain write to the store inside the
    /// body throws ``CacheError/Code/reentrant``.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - tags: The tags that the entry gets; nil leaves those that it has, or those of the rule.
    ///   - body: The change.
    /// - Returns: The result of the body.
    /// - Throws: The error of the body, or a write error, see ``CacheError``.
    @discardableResult
    public func update<R>(
        _ key: Key, tags: Set<String>? = nil, _ body: (inout Value?) throws -> R
    ) throws -> R {
        try manager.transacting("update the value") { try update(key, tags, in: $0, body) }
    }

    /// Changes the value of a key in one step; setting nil removes the entry.
    ///
    /// The body holds the writer of the store on a thread of its own. A plain write to the store inside it throws
    /// ``CacheError/Code/reentrant``.
    @discardableResult
    public func update<R: Sendable>(
        _ key: Key, tags: Set<String>? = nil, _ body: @escaping @Sendable (inout Value?) throws -> R
    ) async throws -> R {
        try await manager.transacting("update the value") { try self.update(key, tags, in: $0, body) }
    }

    private func update<R>(
        _ key: Key, _ tags: Set<String>?, in scope: TransactionScope, _ body: (inout Value?) throws -> R
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
        (meta.cost, meta.refresh) = (nil, nil)
        var attributes = rule?(key, value)
        if let tags { attributes = EntryAttributes(tags: tags, cost: attributes?.cost, maxAge: attributes?.maxAge) }
        try attributes?.replace(in: &meta, &end, writtenAt: now, "key \"\(stored.name)\" of cache \"\(name)\"")
        try scope.put(write(value, forKey: key, stored, at: now, end, meta, keepsPin: false), in: self)
        return result
    }
}

extension Cache where Value == Data {
    /// Writes the bytes of a file as the value of a key, of which never more than a megabyte is in memory.
    ///
    /// The file is cloned where the file system does that, which takes no room, and else copied. Memory keeps no copy of the
    /// value; `fileURL(forKey:)` gives it back as a file. Symbolic links are followed. A value that is not larger than
    /// ``CacheOptions/inlineLimit``, a store in memory and a codec with transforms take the bytes into memory.
    ///
    /// The rule of the cache is not asked, since it would need the value.
    ///
    /// - Parameters:
    ///   - file: A regular file, which nothing changes in the meantime.
    ///   - key: The key.
    ///   - maxAge: The maximum age of this entry, in place of the cache's.
    ///   - extendedData: Bytes to store with the value.
    ///   - tags: The tags by which `removeAll(tagged:)` and `entries(tagged:)` find the entry.
    /// - Throws: `.storageUnavailable` if the file is none, cannot be read, or changes while it is copied. Else a
    ///   write error, see ``CacheError``.
    public func setValue(
        contentsOf file: URL, forKey key: Key, maxAge: MaxAge? = nil, extendedData: Data? = nil, tags: Set<String> = []
    ) throws(CacheError) {
        try requireUnshared("set the value")
        let stored = try stored(key)
        let attributes = EntryAttributes(maxAge: maxAge, extendedData: extendedData, tags: tags)
        let subject = "key \"\(stored.name)\" of cache \"\(name)\""
        // Refused before a large file is copied.
        _ = try attributes.stored(at: rows.now(), subject)
        guard file.isFileURL else {
            throw CacheError(
                .storageUnavailable, "\(file) is no file, and cannot be the value of \(subject). Download it first.")
        }
        let copied = try throwing("copy a file", stored) { () throws(StoreError) in
            try rows.copy(
                file.path, for: stored, label: label(stored),
                isPlain: codec.identifier == ValueCodec<Data>.data.identifier)
        }
        guard let file = copied.file else { return try run(write(copied.bytes, forKey: key, attributes)) }
        let now = rows.now()
        let (meta, end) = try attributes.stored(at: now, subject)
        let entry = EntryWrite(key: stored, file: file, writtenAt: now, expiresAt: end, meta: meta)
        _ = try rows.run(change(onDisk: entry, of: key, copies.seed.hash(key)), "set the value")
    }

    /// Writes the bytes of a file as the value of a key, of which never more than a megabyte is in memory.
    public func setValue(
        contentsOf file: URL, forKey key: Key, maxAge: MaxAge? = nil, extendedData: Data? = nil, tags: Set<String> = []
    ) async throws(CacheError) {
        try await offload { () throws(CacheError) in
            try self.setValue(
                contentsOf: file, forKey: key, maxAge: maxAge, extendedData: extendedData, tags: tags)
        }
    }
}

/// The write path: encode, then one change of the store, which memory takes in after its commit.
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
        let (meta, end) = try whole(attributes, key, value).stored(
            at: now, "key \"\(stored.name)\" of cache \"\(name)\"")
        return try write(
            value, forKey: key, stored, at: now, end, meta, keepsPin: attributes.isPinned == nil,
            payload: attributes.payload)
    }

    /// Returns the attributes of a call with those of the rule.
    @inlinable
    package func whole(_ attributes: EntryAttributes, _ key: Key, _ value: Value) -> EntryAttributes {
        guard let rule, attributes.payload == nil else { return attributes }
        return filled(attributes, by: rule(key, value))
    }

    @usableFromInline
    func filled(_ attributes: EntryAttributes, by others: EntryAttributes) -> EntryAttributes {
        var attributes = attributes
        attributes.fill(from: others)
        return attributes
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

    // MARK: Changes

    /// Writes a value.
    @inlinable
    func run(_ write: Write) throws(CacheError) {
        try requireUnshared("set the value")
        _ = try rows.run(change(write), "set the value")
    }

    /// Writes a value that memory does not keep.
    func runOnDisk(_ write: Write) throws(CacheError) {
        try requireUnshared("set the value")
        _ = try rows.run(change(onDisk: write.entry, of: write.copy.key, write.copy.hash), "set the value")
    }

    /// Writes values in one step.
    @inlinable
    func run(_ writes: [Write], _ action: String) throws(CacheError) {
        try requireUnshared(action)
        copies.beginChange(of: writes.count)
        defer { copies.endChange(of: writes.count) }
        _ = try rows.run(change(writes), action)
    }

    /// Writes values in one step, for a task.
    func run(_ writes: [Write], _ action: String) async throws {
        try requireUnshared(action)
        copies.beginChange(of: writes.count)
        defer { copies.endChange(of: writes.count) }
        _ = try await rows.run(change(writes), action)
    }

    /// The change that writes a value.
    @inlinable
    func change(_ write: Write) -> Change {
        let (copies, copy) = (core.copies, write.copy)
        return change([write.entry]) { copies.wrote(CollectionOfOne(copy), $0, &$1) }
    }

    /// The change that writes values.
    @inlinable
    func change(_ writes: [Write]) -> Change {
        let (copies, values) = (core.copies, writes.map { $0.copy })
        return change(writes.map { $0.entry }) { copies.wrote(values, $0, &$1) }
    }

    @usableFromInline
    func change(_ entries: [EntryWrite], taking: @escaping Change.Taking) -> Change {
        Change(.put(entries), in: core.copies, taking: taking)
    }

    /// The change that writes a value which memory does not keep.
    private func change(onDisk entry: EntryWrite, of key: Key, _ hash: UInt64) -> Change {
        let copies = core.copies
        return Change(.put([entry]), in: copies) { copies.wroteToDisk(key, hash: hash, $0, &$1) }
    }

    /// The change that writes values if a condition holds.
    func change(_ writes: [Write], by origin: Change.Origin = .program, if condition: any ChangeCondition) -> Change {
        let (copies, values) = (core.copies, writes.map { $0.copy })
        return Change(.put(writes.map { $0.entry }), by: origin, if: condition, in: copies) {
            copies.wrote(values, $0, &$1)
        }
    }

    /// The change that removes keys.
    func removal(of keys: [(key: Key, stored: StoredKey)]) throws(CacheError) -> Change {
        try requireUnshared("remove the value")
        let (copies, now) = (core.copies, rows.now())
        let hashed = keys.map { (key: $0.key, stored: $0.stored, hash: copies.seed.hash($0.key)) }
        return Change(.remove(keys.map { $0.stored }), in: copies) { copies.removed(hashed, $0, at: now, &$1) }
    }

    /// The change that removes a key, and returns its row.
    func taking(_ key: Key, _ stored: StoredKey) throws(CacheError) -> Change {
        try requireUnshared("remove the value")
        let (copies, hash, now) = (core.copies, copies.seed.hash(key), rows.now())
        return Change(.take(stored), in: copies) { copies.removed([(key, stored, hash)], $0, at: now, &$1) }
    }

    /// The change of attributes of an entry.
    func change(
        _ key: Key, _ stored: StoredKey, _ change: AttributeChange, by origin: Change.Origin = .program,
        if condition: (any ChangeCondition)? = nil
    ) -> Change {
        let (copies, hash) = (core.copies, copies.seed.hash(key))
        let work = Change.Work.attributes(stored, change, at: rows.store.time.now())
        return Change(work, by: origin, if: condition, in: copies) { copies.changed(key, hash: hash, $0, &$1) }
    }
}
