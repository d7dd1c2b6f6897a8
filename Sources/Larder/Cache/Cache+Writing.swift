public import Foundation

extension Cache {
    /// Writes the value of a key, in both tiers; nil removes it.
    ///
    /// An argument that is left out resets what the entry had: its own age, cost, extended data and tags. Its pin
    /// stays. If the call throws, it has stored nothing. On a full disk it may have evicted entries before that, see
    /// ``CacheOptions/onFullDisk``.
    ///
    /// - Parameters:
    ///   - value: The value, or nil.
    ///   - key: The key.
    ///   - cost: What it counts against the cost limit of the memory tier; the size of its payload if nil. It is stored:
    ///     a value that comes back from disk costs the same.
    ///   - maxAge: An age of this entry's own, in place of the sub-cache's.
    ///   - extendedData: Bytes to store beside the value. What was there goes if nil; empty is not nil.
    ///   - tags: Words by which `removeAll(tagged:)` finds the entry.
    ///   - pinned: Whether limits and trims leave the entry on disk; nil keeps a pin that is there.
    @inlinable
    public func setValue(
        _ value: Value?, forKey key: Key, cost: Int? = nil, maxAge: MaxAge? = nil, extendedData: Data? = nil,
        tags: Set<String> = [], pinned: Bool? = nil
    ) throws(CacheError) {
        guard let value else { return try remove(key) }
        try checkWritable("set a value")
        var write = try core.prepare(
            value, forKey: key, cost: cost, age: maxAge, extended: extendedData, isPinned: pinned, terms)
        if !tags.isEmpty { write.content.row.setTags(tags) }
        try core.put(write)
    }

    /// Writes many values in one step: every reader sees all of them or none; so does the disk.
    public func setValues(_ values: some Sequence<(Key, Value)>) throws(CacheError) {
        try checkWritable("set values")
        var writes = try encoded(values)
        if writes.isEmpty { return }
        try core.spill(&writes, terms)
        try core.run(writes)
    }

    /// Writes every value of a dictionary in one step.
    public func setValues(_ values: [Key: Value]) throws(CacheError) {
        try setValues(values.lazy.map { ($0.key, $0.value) })
    }

    /// Puts other bytes beside the value of a key, whose age goes on; nil takes them away.
    ///
    /// Nothing changes if the key has no value.
    public func setExtendedData(_ data: Data?, forKey key: Key) throws(CacheError) {
        try checkWritable("set extended data")
        let stored = try core.keyCodec.stored(key, cache: name)
        try ledger.run(core.changeRequest(key, stored, terms, overtakesLoads: true) { $0.extended = data })
    }

    /// Restarts the age of an entry without its value.
    ///
    /// The entry counts as written now. Its value, cost, extended data, tags and pin stay.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - maxAge: An age of the entry's own from now on; nil leaves the one that it has.
    /// - Returns: Whether there was an entry.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`, `.invalidConfiguration`.
    @discardableResult
    public func touch(_ key: Key, maxAge: MaxAge? = nil) throws(CacheError) -> Bool {
        try checkWritable("touch an entry")
        if let maxAge { try core.check(maxAge) }
        let stored = try core.keyCodec.stored(key, cache: name)
        let (now, age) = (terms.now(), maxAge.map { StoredAge($0.rule) })
        let request = core.changeRequest(key, stored, terms, isWrite: true) { columns in
            columns.writtenAt = now
            if let age { columns.age = age }
        }
        try ledger.run(request)
        guard request.outcome.isChange else { return false }
        // It may end sooner than before. Without an age of its own it ends later.
        if let age { ledger.noteEnd(writtenAt: now, age: age) }
        return true
    }

    /// Pins an entry or takes its pin away, without its value.
    ///
    /// - Parameters:
    ///   - isPinned: Whether limits and trims leave the entry on disk.
    ///   - key: The key.
    /// - Returns: Whether there was an entry.
    /// - Throws: `.readOnly`, `.closed`, `.superseded`, `.storageFull`, `.busy`, `.reentrant`.
    @discardableResult
    public func setPinned(_ isPinned: Bool, forKey key: Key) throws(CacheError) -> Bool {
        try checkWritable("pin an entry")
        let stored = try core.keyCodec.stored(key, cache: name)
        let request = core.changeRequest(key, stored, terms) { $0.isPinned = isPinned }
        try ledger.run(request)
        return request.outcome.isChange
    }

    /// Removes a key, and gives back the value that it had, if that was usable.
    ///
    /// If the value's file cannot be read the call throws, and the key is removed all the same.
    @discardableResult
    public func removeValue(forKey key: Key) throws(CacheError) -> Value? {
        try checkWritable("remove a value")
        let stored = try core.keyCodec.stored(key, cache: name)
        let request = core.takeRequest(key, stored, terms)
        try ledger.runKeeping(request)
        // Read first: nobody else gives the file up.
        defer { ledger.settle(request) }
        return try taken(request.outcome.row, stored)
    }

    /// Removes a key without reading its value.
    public func remove(_ key: Key) throws(CacheError) {
        try checkWritable("remove a value")
        let stored = try core.keyCodec.stored(key, cache: name)
        try ledger.run(core.removeRequest([(key, stored)]))
    }

    /// Removes many keys in one step; those that are not there do not matter.
    ///
    /// On a full volume it takes as many steps as it has to.
    public func removeValues(forKeys keys: some Sequence<Key>) throws(CacheError) {
        try checkWritable("remove values")
        let stored = try self.stored(keys)
        try remove(stored, by: stored.count)
    }

    func remove(_ keys: [(key: Key, stored: StoredKey)], by count: Int) throws(CacheError) {
        try inSlices(keys, of: count) { (slice) throws(CacheError) in
            try ledger.run(core.removeRequest(slice))
        }
    }

    // MARK: - What both forms need

    @usableFromInline
    func checkWritable(_ action: String) throws(CacheError) {
        let store = try manager.writableStore()
        try store.inside.refuseCurrent(action)
    }

    /// Throws where another version was opened, or the sub-cache was removed, as far as anybody has committed by now.
    ///
    /// For calls that may find nothing to write, which would else pass for done.
    func checkCurrent(_ action: String) throws(CacheError) {
        try checkWritable(action)
        if try !ledger.isCurrent() { throw ledger.supersededError }
    }

    func encoded(_ values: some Sequence<(Key, Value)>) throws(CacheError) -> [PreparedWrite<Key, Value>] {
        var writes: [PreparedWrite<Key, Value>] = []
        writes.reserveCapacity(values.underestimatedCount)
        for (key, value) in values { writes.append(try core.encoded(value, forKey: key, terms)) }
        return writes
    }

    func stored(_ keys: some Sequence<Key>) throws(CacheError) -> [(key: Key, stored: StoredKey)] {
        var stored: [(Key, StoredKey)] = []
        for key in keys { stored.append((key, try core.keyCodec.stored(key, cache: name))) }
        return stored
    }

    /// The value of a row that was just removed.
    func taken(_ row: EntryRow?, _ stored: StoredKey) throws(CacheError) -> Value? {
        guard let row = try row.map({ (row) throws(CacheError) in try ledger.filledLast(row) }) else { return nil }
        do throws(CacheError) {
            return try core.decode(row, stored, terms)
        } catch {
            ledger.count { $0.failures += 1 }
            core.report(
                error.underlying == nil ? .corruptEntry : .undecodable, key: stored, error.message, error: error)
            return nil
        }
    }
}
