internal import LarderSQLite

extension CacheManager {
    /// Opens a sub-cache with the standard codec: raw bytes for `Data`, CBOR for everything else.
    ///
    /// - Parameters:
    ///   - name: Any string but the empty one; compared as UTF-8 bytes.
    ///   - version: What the entries are worth: opened under another one than they were written, they are purged.
    ///   - maxAge: How long this handle serves an entry.
    ///   - options: How the sub-cache works.
    public func cache<Key, Value>(
        named name: String, version: CacheVersion, maxAge: MaxAge, options: CacheOptions = .init()
    ) throws(CacheError) -> Cache<Key, Value> where Value: Codable {
        try cache(named: name, version: version, maxAge: maxAge, options: options, codec: .standard)
    }

    /// Opens a sub-cache with a codec of your choice.
    ///
    /// While another handle on it lives, the two share everything but their maximum age, the closures of their codec,
    /// and the options `inlineLimit`, `undecodable` and `fileName`; the other options are those of the latest opening.
    /// Opened under another version or with another codec than before, its entries are purged in one step, and older
    /// handles show and write nothing any more.
    ///
    /// - Throws: `.typeMismatch` if a live handle of this version has other types; `.invalidConfiguration` for a
    ///   maximum age made from not-a-number, and for a negative time or number in ``CacheOptions/keepsExpired`` and
    ///   ``CacheOptions/disk``.
    public func cache<Key, Value>(
        named name: String, version: CacheVersion, maxAge: MaxAge, options: CacheOptions = .init(),
        codec: ValueCodec<Value>
    ) throws(CacheError) -> Cache<Key, Value> {
        let store = try store()
        guard !name.isEmpty else {
            throw CacheError(.invalidName, "A sub-cache cannot have an empty name; give it one.")
        }
        guard maxAge.isNumber else {
            throw CacheError(
                .invalidConfiguration,
                "The maximum age of cache \"\(name)\" was made from not-a-number; give a number or `.unlimited`.")
        }
        guard options.keepsExpired >= .zero else {
            throw CacheError(
                .invalidConfiguration,
                "Cache \"\(name)\" cannot keep what is over for \(options.keepsExpired); give zero or more.")
        }
        if let grain = options.accessGrain, grain < .zero {
            throw CacheError(
                .invalidConfiguration, "Cache \"\(name)\" cannot have an access grain of \(grain); give zero or more.")
        }
        try options.disk.check(cacheNamed: name)
        let terms = CacheTerms(
            rule: maxAge.rule, clock: injectedClock, codec: codec, options: options)
        let opening = CacheOpening<Key, Value>(
            name: name, version: version, codec: codec.identifier, options: options, rule: maxAge.rule,
            openedAt: terms.now(), clock: terms.now, store: store, isReadOnly: isReadOnly, reporter: reporter)
        let (core, handle) = try opening.open()
        return Cache(core, handle: handle, terms, maxAge, self)
    }

    /// What is known of each sub-cache, by name.
    ///
    /// - Complexity: O(n) in the number of all entries.
    public func cacheInfo() throws(CacheError) -> [CacheInfo] {
        let store = try store()
        // From inside a body that holds the writing side this would wait for itself; counts may lag a little then.
        if !store.inside.containCurrent {
            do throws(CacheError) {
                try store.flushUses()
            } catch {
                // A full disk must not keep anybody from looking.
                store.notify(.backgroundFailure(error))
            }
        }
        let now = store.timekeeper.now()
        let found = try store.read { (connection, _) throws(SQLiteError) in
            var found: [(generation: Generation, count: Int, size: Int64)] = []
            for generation in try connection.liveGenerations() {
                found.append(
                    (
                        generation, try connection.countLive(generation.id, generation.age.rule, now: now),
                        try connection.totalSize(generation.id)
                    ))
            }
            return found
        }
        return try found.map { (item) throws(CacheError) in
            let ledger = store.live[item.generation.name].flatMap { $0.generation == item.generation.id ? $0 : nil }
            // What could not be read counts as absent, as for those who use the sub-cache.
            let terms = AgeTerms(rule: item.generation.age.rule, now: { now })
            return CacheInfo(
                name: item.generation.name, version: .custom(item.generation.version),
                count: ledger?.knowsUnreadable == true ? try ledger?.count(terms) ?? item.count : item.count,
                sizeOnDisk: item.size,
                openedAt: SystemClock.date(of: ledger?.openedAt ?? item.generation.openedAt))
        }
    }

    /// Takes a sub-cache out of the store: its handles show and write nothing any more.
    ///
    /// One that is not there does not matter.
    /// - Complexity: O(1); the rows go in the background.
    public func removeCache(named name: String) throws(CacheError) {
        let store = try writableStore()
        try store.inside.refuseCurrent("remove a sub-cache")
        try store.write(BlockTraits(isAlone: true)) { (connection, _) throws(SQLiteError) in
            if let live = try connection.liveGeneration(named: name) { try connection.retire(live.id) }
        } apply: { _, discards in
            store.live[name]?.supersede(&discards)
            store.live[name] = nil
        }
        store.reclaimer.begin(store)
    }

    /// Empties every cache in one step; handles stay good.
    ///
    /// No reader, in whatever process, finds one cache empty and another one full.
    ///
    /// - Throws: `.readOnly`, `.closed`, `.storageFull`, `.busy`, `.reentrant`.
    /// - Complexity: O(1) for each cache; the rows are reclaimed in the background.
    public func removeAll() throws(CacheError) {
        let store = try writableStore()
        try store.inside.refuseCurrent("remove everything")
        // Everything is held: it must not come between the read and the write of an update.
        try store.write(BlockTraits(isAlone: true), scope: .holding(.everything)) {
            (connection, _) throws(SQLiteError) -> [Generation] in
            var successors: [Generation] = []
            for var generation in try connection.liveGenerations() {
                try connection.retire(generation.id)
                generation.lineage = generation.root
                successors.append(try connection.insert(generation))
            }
            return successors
        } apply: { successors, discards in
            for successor in successors { store.live[successor.name]?.replaced(by: successor, &discards) }
        }
        store.reclaimer.begin(store)
    }

    /// Empties every cache in one step, without blocking the caller's executor.
    ///
    /// - Throws: `.readOnly`, `.closed`, `.storageFull`, `.busy`, `.reentrant`.
    public func removeAll() async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.removeAll() }
    }

    /// Takes a cache out of the store, without blocking the caller's executor.
    ///
    /// - Parameter name: Its name; a cache that is not there does not matter.
    /// - Throws: `.readOnly`, `.closed`, `.storageFull`, `.busy`, `.reentrant`.
    public func removeCache(named name: String) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.removeCache(named: name) }
    }

    /// Returns what is known of each cache, by name, without blocking the caller's executor.
    ///
    /// - Throws: `.closed`, `.busy`, `.corrupt`.
    public func cacheInfo() async throws(CacheError) -> [CacheInfo] {
        try await offload { () throws(CacheError) in try self.cacheInfo() }
    }
}
