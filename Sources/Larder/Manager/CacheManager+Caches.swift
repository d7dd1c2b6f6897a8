internal import Foundation
internal import LarderStore

extension CacheManager {
    /// Opens a cache with the default codec: raw bytes for `Data`, CBOR for everything else.
    ///
    /// If the entries of the cache were written under another version or with another codec, they are purged in one
    /// step, unless a migration carries them over. Older handles then find nothing, and their writes throw ``CacheError/Code/superseded``. The handles on one
    /// cache share everything but their codecs' closures, their rules of attributes and the options `inlineLimit`, `accessGrain`,
    /// `undecodable`, `onFullDisk` and `fileName`. The latest open sets the maximum age and the other options. An open
    /// without limits leaves those that the cache has, and the longest `keepsExpired` of all opens holds.
    ///
    /// - Parameters:
    ///   - name: Any string but the empty one; compared as UTF-8 bytes.
    ///   - version: The version of the entries.
    ///   - maxAge: The maximum age of entries without one of their own.
    ///   - options: The options of the cache.
    ///   - attributes: The rule that gives the attributes of each value that this handle writes, see ``EntryAttributes``.
    ///   - migrations: The steps that carry over what older versions have stored.
    ///   - progress: Called after each part of a migration with the numbers of entries.
    /// - Throws: `.typeMismatch` if a live handle of this manager has the same version and other types, or if the cache was
    ///   opened under this version with keys of another kind: integers, texts, or anything else.
    ///   `.invalidConfiguration` for a maximum age from not-a-number, for negative numbers in the options, and for
    ///   migrations that loop, are ambiguous, lead nowhere or name another codec than the stored one. `.invalidName`
    ///   for an empty name. Else a write error, see ``CacheError``.
    public func cache<Key, Value>(
        named name: String, version: CacheVersion, maxAge: MaxAge, options: CacheOptions = .init(),
        attributes: (@Sendable (Key, Value) -> EntryAttributes)? = nil,
        migrations: [CacheMigration<Key, Value>] = [], progress: ProgressHandler? = nil
    ) throws(CacheError) -> Cache<Key, Value> where Value: Codable {
        try cache(
            named: name, version: version, maxAge: maxAge, options: options, codec: .standard, attributes: attributes,
            migrations: migrations, progress: progress)
    }

    /// Opens a cache with a codec.
    ///
    /// If the entries of the cache were written under another version or with another codec, they are purged in one
    /// step, unless a migration carries them over. Older handles then find nothing, and their writes throw ``CacheError/Code/superseded``. The handles on one
    /// cache share everything but their codecs' closures, their rules of attributes and the options `inlineLimit`, `accessGrain`,
    /// `undecodable`, `onFullDisk` and `fileName`. The latest open sets the maximum age and the other options. An open
    /// without limits leaves those that the cache has, and the longest `keepsExpired` of all opens holds.
    ///
    /// - Parameters:
    ///   - name: Any string but the empty one; compared as UTF-8 bytes.
    ///   - version: The version of the entries.
    ///   - maxAge: The maximum age of entries without one of their own.
    ///   - options: The options of the cache.
    ///   - codec: The codec of the values.
    ///   - attributes: The rule that gives the attributes of each value that this handle writes, see ``EntryAttributes``.
    ///   - migrations: The steps that carry over what older versions have stored.
    ///   - progress: Called after each part of a migration with the numbers of entries.
    /// - Throws: `.typeMismatch` if a live handle of this manager has the same version and other types, or if the cache was
    ///   opened under this version with keys of another kind: integers, texts, or anything else.
    ///   `.invalidConfiguration` for a maximum age from not-a-number, for negative numbers in the options, and for
    ///   migrations that loop, are ambiguous, lead nowhere or name another codec than the stored one. `.invalidName`
    ///   for an empty name. Else a write error, see ``CacheError``.
    public func cache<Key, Value>(
        named name: String, version: CacheVersion, maxAge: MaxAge, options: CacheOptions = .init(),
        codec: ValueCodec<Value>, attributes: (@Sendable (Key, Value) -> EntryAttributes)? = nil,
        migrations: [CacheMigration<Key, Value>] = [], progress: ProgressHandler? = nil
    ) throws(CacheError) -> Cache<Key, Value> {
        let opening = try CacheOpening(name, version, maxAge, options, codec.identifier, KeyCodec<Key>.kind)
        let _: CacheCore<Key, Value>? = try core(opening.declaration.identity)
        if !migrations.isEmpty {
            let plan = try MigrationPlan(migrations, to: version, codec, cacheNamed: name)
            try migrate(to: opening.declaration, options, attributes, plan, progress)
        }
        let rows = try throwing("open the cache \"\(name)\"") { () throws(StoreError) in
            try store.open(
                opening.declaration, inlineLimit: options.inlineLimit, accessGrain: opening.accessGrain,
                evictsOnFullDisk: options.onFullDisk == .evict, limits: options.disk?.storeLimits,
                keepsExpired: opening.keepsExpired)
        }
        if opening.declaration.ageRule.isOverAtOnce {
            let text =
                "The cache \"\(name)\" was opened with the maximum age \(maxAge), so its entries are expired at once. Use an age"
                + " above zero, unless that is meant."
            reporter.noteOnce(LogMessage(.warning, text))
        }
        return try handle(on: rows, opening, version, maxAge, options, codec, attributes)
    }

    /// Opens a cache with the default codec, and purges what was written under another version or codec unless a migration carries it over.
    public func cache<Key, Value>(
        named name: String, version: CacheVersion, maxAge: MaxAge, options: CacheOptions = .init(),
        attributes: (@Sendable (Key, Value) -> EntryAttributes)? = nil,
        migrations: [CacheMigration<Key, Value>] = [], progress: ProgressHandler? = nil
    ) async throws(CacheError) -> Cache<Key, Value> where Value: Codable {
        try await cache(
            named: name, version: version, maxAge: maxAge, options: options, codec: .standard, attributes: attributes,
            migrations: migrations, progress: progress)
    }

    /// Opens a cache with a codec.
    ///
    /// - Parameters:
    ///   - name: Any string but the empty one; compared as UTF-8 bytes.
    ///   - version: The version of the entries.
    ///   - maxAge: The maximum age of entries without one of their own.
    ///   - options: The options of the cache.
    ///   - codec: The codec of the values.
    ///   - attributes: The rule that gives the attributes of each value that this handle writes, see ``EntryAttributes``.
    ///   - migrations: The steps that carry over what older versions have stored.
    ///   - progress: Called after each part of a migration with the numbers of entries.
    /// - Throws: `.typeMismatch` if a live handle of this manager has the same version and other types, or if the cache was
    ///   opened under this version with keys of another kind: integers, texts, or anything else.
    ///   `.invalidConfiguration` for a maximum age from not-a-number, for negative numbers in the options, and for
    ///   migrations that loop, are ambiguous, lead nowhere or name another codec than the stored one. `.invalidName`
    ///   for an empty name. Else a write error, see ``CacheError``.
    public func cache<Key, Value>(
        named name: String, version: CacheVersion, maxAge: MaxAge, options: CacheOptions = .init(),
        codec: ValueCodec<Value>, attributes: (@Sendable (Key, Value) -> EntryAttributes)? = nil,
        migrations: [CacheMigration<Key, Value>] = [], progress: ProgressHandler? = nil
    ) async throws(CacheError) -> Cache<Key, Value> {
        try await offload { () throws(CacheError) in
            try self.cache(
                named: name, version: version, maxAge: maxAge, options: options, codec: codec,
                attributes: attributes, migrations: migrations, progress: progress)
        }
    }

    /// Opens a cache of the given types with the default codec, as `cache(named:version:maxAge:)` does.
    ///
    /// The types are arguments, so no annotation is needed:
    ///
    /// ```swift
    /// let articles = try manager.cache(of: Int.self, Article.self, named: "articles", version: "3", maxAge: .days(7))
    /// ```
    public func cache<Key, Value>(
        of keyType: Key.Type, _ valueType: Value.Type, named name: String, version: CacheVersion, maxAge: MaxAge,
        options: CacheOptions = .init(), attributes: (@Sendable (Key, Value) -> EntryAttributes)? = nil,
        migrations: [CacheMigration<Key, Value>] = [], progress: ProgressHandler? = nil
    ) throws(CacheError) -> Cache<Key, Value> where Value: Codable {
        try cache(
            named: name, version: version, maxAge: maxAge, options: options, attributes: attributes,
            migrations: migrations, progress: progress)
    }

    /// Opens a cache of the given types with the default codec, and blocks no thread of the cooperative pool.
    public func cache<Key, Value>(
        of keyType: Key.Type, _ valueType: Value.Type, named name: String, version: CacheVersion, maxAge: MaxAge,
        options: CacheOptions = .init(), attributes: (@Sendable (Key, Value) -> EntryAttributes)? = nil,
        migrations: [CacheMigration<Key, Value>] = [], progress: ProgressHandler? = nil
    ) async throws(CacheError) -> Cache<Key, Value> where Value: Codable {
        try await cache(
            named: name, version: version, maxAge: maxAge, options: options, attributes: attributes,
            migrations: migrations, progress: progress)
    }

    /// Carries over what another version has stored, if the plan has a way from there.
    private func migrate<Key, Value>(
        to declaration: CacheDeclaration, _ options: CacheOptions, _ rule: (@Sendable (Key, Value) -> EntryAttributes)?,
        _ plan: MigrationPlan<Key, Value>, _ progress: ProgressHandler?
    ) throws(CacheError) {
        // Another process may open another version in the meantime.
        for _ in 0..<3 {
            let stored = try throwing("open the cache \"\(declaration.name)\"") { () throws(StoreError) in
                try store.storedDeclaration(of: declaration.name)
            }
            guard let stored, stored.identity != declaration.identity,
                let migration = try plan.migration(from: stored, fileName: options.fileName, rule: rule)
            else { return }
            let isDone = try throwing("migrate the cache \"\(declaration.name)\"") { () throws(StoreError) in
                try store.migrate(stored, to: declaration, inlineLimit: options.inlineLimit, migration) {
                    progress?(CacheProgress(completed: $0, total: $1))
                }
            }
            if isDone { return }
        }
    }

    private func handle<Key, Value>(
        on rows: CacheRows, _ opening: CacheOpening, _ version: CacheVersion, _ maxAge: MaxAge, _ options: CacheOptions,
        _ codec: ValueCodec<Value>, _ rule: (@Sendable (Key, Value) -> EntryAttributes)?
    ) throws(CacheError) -> Cache<Key, Value> {
        let now = rows.store.time.now()
        let (core, isNew) = try core(opening.declaration.identity) {
            CacheCore<Key, Value>(rows, options, maxAge, self, at: now)
        }
        supersede(rows.declaration.name, by: rows.declaration.identity, rows.openingCount)
        if !isNew {
            if rows.isNew { core.wasCleared() }
            core.declare(options, maxAge, rows)
        }
        let cache = Cache(core, rows, version, codec, rule, options, self)
        if isNew, options.warms != nil { cache.warm() }
        return cache
    }

    // MARK: All caches

    /// Returns what the store says of each cache, sorted by name: its entries, its limits and how it was used.
    ///
    /// - Throws: A read error, see ``CacheError``.
    /// - Complexity: O(n) in the number of entries of all caches.
    public func cacheInfo() throws(CacheError) -> [CacheInfo] {
        try throwing("list the caches") { () throws(StoreError) in try store.caches() }.map { cache in
            CacheInfo(
                name: cache.declaration.name, version: CacheVersion(cache.declaration.version), count: Int(cache.count),
                sizeOnDisk: cache.size, openedAt: SystemClock.date(of: cache.openedAt),
                limits: DiskLimits(cache.limits), activity: CacheStatistics(activity: cache.activity),
                lastOpener: cache.opener.map {
                    CacheInfo.StoreOpener(
                        program: $0.program, libraryVersion: $0.library, openedAt: SystemClock.date(of: $0.openedAt))
                })
        }
    }

    /// Returns the name, version, count, size and time of the last open of each cache, sorted by name.
    public func cacheInfo() async throws(CacheError) -> [CacheInfo] {
        try await offload { () throws(CacheError) in try self.cacheInfo() }
    }

    /// Removes a cache: its handles then find nothing, and their writes throw ``CacheError/Code/superseded``.
    ///
    /// - Parameter name: The name of the cache. If there is none of this name, nothing changes.
    /// - Throws: A write error, see ``CacheError``.
    public func removeCache(named name: String) throws(CacheError) {
        let openingCount = try throwing("remove the cache \"\(name)\"") { () throws(StoreError) in
            try store.removeCache(named: name)
        }
        supersede(name, by: nil, openingCount)
    }

    /// Removes a cache: its handles then find nothing, and their writes throw ``CacheError/Code/superseded``.
    public func removeCache(named name: String) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.removeCache(named: name) }
    }

    /// Removes all entries of all caches in one step.
    ///
    /// The handles stay valid. The rows are deleted in the background.
    ///
    /// - Throws: A write error, see ``CacheError``.
    public func removeAll() throws(CacheError) {
        try throwing("remove everything") { () throws(StoreError) in try store.removeAll() }
        for cache in allOpenCaches { cache.wasCleared() }
    }

    /// Removes all entries of all caches in one step.
    public func removeAll() async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.removeAll() }
    }
}

/// The parameters of an open, in the form that the store takes.
private struct CacheOpening {
    let declaration: CacheDeclaration
    /// Nil leaves the choice to the store.
    let accessGrain: Int64?
    let keepsExpired: Int64

    init(
        _ name: String, _ version: CacheVersion, _ maxAge: MaxAge, _ options: CacheOptions, _ codec: String,
        _ keyKind: KeyKind?
    ) throws(CacheError) {
        guard !name.isEmpty else { throw CacheError(.invalidName, "A cache needs a name that is not empty.") }
        try maxAge.requireNumber("the cache \"\(name)\"")
        try options.disk?.check(cacheNamed: name)
        func require(_ isPositive: Bool, _ option: String, _ value: some Any) throws(CacheError) {
            if isPositive { return }
            throw CacheError(
                .invalidConfiguration,
                "The option `\(option)` of the cache \"\(name)\" is \(value). Use zero or more.")
        }
        if let warms = options.warms { try require(warms.amount >= 0, "warms", warms) }
        try require(options.inlineLimit >= 0, "inlineLimit", options.inlineLimit)
        if let grain = options.accessGrain { try require(grain >= .zero, "accessGrain", grain) }
        try require(options.remembersRemovals >= 0, "remembersRemovals", options.remembersRemovals)
        try require(options.keepsExpired >= .zero, "keepsExpired", options.keepsExpired)
        let rule = maxAge.rule
        declaration = CacheDeclaration(
            name: name, version: version.text, codec: codec, ageRule: rule, keyKind: keyKind)
        accessGrain = options.accessGrain.map { SystemClock.saturated($0 / .milliseconds(1)) }
        keepsExpired = SystemClock.saturated(options.keepsExpired / .milliseconds(1))
    }
}

extension DiskLimits {
    init(_ limits: Limits) {
        self.init(countLimit: limits.count.map { Int(clamping: $0) }, sizeLimit: limits.size)
    }

    var storeLimits: Limits { Limits(count: countLimit.map(Int64.init), size: sizeLimit) }
}
