internal import Foundation
internal import LarderLocks
internal import LarderSQLite
package import LarderStore

/// Values that are loaded if they are missing, once for all callers that ask at the same time.
///
/// Calls that miss a key while a load of it runs share this load: each gets its value, or its error, which is not stored. A
/// load does not overwrite a key that is set, updated, removed, cleared or purged in the meantime; the callers of the load
/// get its value all the same. If a value cannot be stored, an event reports it.
///
/// A closure may use the cache. If it asks, itself or through the loads that it begins, for a key that it is loading, that call
/// throws ``CacheError/Code/recursiveGeneration``. Loads of unrelated tasks that wait for each other are not found: their
/// callers, and later ones, wait until they are cancelled.
///
/// Loads are shared within a manager. A late result may overwrite what another process has set in the meantime.
extension Cache {
    /// Returns the value of a key; if there is none, `generate` loads it on this thread.
    ///
    /// The call waits for a synchronous load of another thread, but not for an asynchronous one, and for none from inside a
    /// load: it runs its own closure then, and what is stored first stays. Inside a body of a transaction it loads nothing, and
    /// throws `.reentrant` if there is no value.
    ///
    /// - Throws: A load error, see ``CacheError``.
    @_disfavoredOverload
    @inlinable
    public func value(forKey key: Key, generate: (Key) throws -> Value) throws -> Value {
        var ticket: ReadTicket?
        if let value = hit(key, copies.seed.hash(key), &ticket) { return value }
        return try loadedValue(key, isInMemory: ticket == nil, generate)
    }

    /// Returns the value of a key; if there is none, `generate` loads it in a task of its own.
    ///
    /// A caller that is cancelled throws `CancellationError` at once. The task is cancelled when the last caller has left.
    @inlinable
    public func value(
        forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        var ticket: ReadTicket?
        if let value = hit(key, copies.seed.hash(key), &ticket) { return value }
        return try await loadedValue(key, isInMemory: ticket == nil, generate)
    }

    /// Returns the values of many keys; one call of `generate` on this thread loads those that are missing.
    ///
    /// Keys that `generate` returns nothing for stay without a value.
    ///
    /// - Throws: A load error, see ``CacheError``.
    @_disfavoredOverload
    public func values(
        forKeys keys: some Sequence<Key>, generate: ([Key]) throws -> [Key: Value]
    ) throws -> [Key: Value] {
        let (known, rest) = try valueInMemory(keys)
        let loaded = try load(rest, needsValue: false) { rows in
            let made = try generate(rows.map { $0.key })
            return rows.map { row in made[row.key].map { .value($0) } }
        }
        return zip(rest, loaded).reduce(into: known) { $0[$1.0.key] = $1.1?.value }
    }

    /// Returns the values of many keys; one call of `generate` in a task of its own loads those that are missing.
    ///
    /// Keys that `generate` returns nothing for stay without a value.
    public func values(
        forKeys keys: some Sequence<Key>, generate: @escaping @Sendable ([Key]) async throws -> [Key: Value]
    ) async throws -> [Key: Value] {
        let (known, rest) = try valueInMemory(keys)
        let loaded = try await load(rest, needsValue: false, at: rows.store.time.now()) { rows in
            let made = try await generate(rows.map { $0.key })
            return Loaded(rows.map { row in made[row.key].map { .value($0) } })
        }
        return zip(rest, loaded).reduce(into: known) { $0[$1.0.key] = $1.1?.value }
    }

    /// Returns the entry of a key; if there is none, `generate` gets the expired one and returns a new one.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - generate: Gets the key and its expired entry; nil if nothing is left of it, or it does not decode.
    /// - Throws: A load error, see ``CacheError``. `.invalidConfiguration` if `generate` returns
    ///   ``Generated/none(for:)``.
    @_disfavoredOverload
    public func entry(
        forKey key: Key, generate: (Key, CacheEntry<Key, Value>?) throws -> Generated<Value>
    ) throws -> CacheEntry<Key, Value> {
        try one(key, loadedEntry(key, generate))
    }

    /// Returns the entry of a key; if there is none, `generate` gets the expired one and returns a new one.
    ///
    /// This serves conditional requests: keep an ETag as extended data, send it, and return ``Generated/notModified`` if the
    /// server has nothing newer. For ``Generated/none(for:)`` it throws `.invalidConfiguration`.
    public func entry(
        forKey key: Key,
        generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> CacheEntry<Key, Value> { try await one(key, loadedEntry(key, generate)) }

    /// Returns the value of a key; if there is none, `generate` gets the expired entry and returns a new value.
    ///
    /// It runs on this thread.
    ///
    /// - Returns: The value; nil if `generate` returns ``Generated/none(for:)``, or has done so before and that holds.
    /// - Throws: A load error, see ``CacheError``.
    @_disfavoredOverload
    public func value(
        forKey key: Key, generate: (Key, CacheEntry<Key, Value>?) throws -> Generated<Value>
    ) throws -> Value? {
        if let value = valueInMemory(key) { return value }
        return try loadedEntry(key, acceptsAbsence: true, generate)?.value
    }

    /// Returns the value of a key; if there is none, `generate` gets the expired entry and returns a new value, or that there is none.
    public func value(
        forKey key: Key,
        generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> Value? {
        if let value = valueInMemory(key) { return value }
        return try await loadedEntry(key, acceptsAbsence: true, generate)?.value
    }

    // MARK: Parts

    /// - Parameter isInMemory: A Boolean value that indicates whether memory has a copy, which a full look may serve.
    @usableFromInline
    func loadedValue(_ key: Key, isInMemory: Bool, _ generate: (Key) throws -> Value) throws -> Value {
        if isInMemory, let value = valueInMemory(key) { return value }
        return try one(key, loadedEntry(key) { key, _ in .value(try generate(key)) }).value
    }

    @usableFromInline
    func loadedValue(
        _ key: Key, isInMemory: Bool, _ generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        if isInMemory, let value = valueInMemory(key) { return value }
        return try await one(key, loadedEntry(key) { key, _ in .value(try await generate(key)) }).value
    }

    private func loadedEntry(
        _ key: Key, acceptsAbsence: Bool = false, _ generate: (Key, Entry?) throws -> Generated<Value>
    ) throws -> Entry? {
        let stored = try stored(key)
        // Another process may have written a key that is known to be absent.
        if acceptsAbsence, isAbsent(stored) { return try entry(forKey: key) }
        return try load([(key, stored)], needsValue: !acceptsAbsence) { [try generate(key, $0[0].entry)] }[0]
    }

    private func loadedEntry(
        _ key: Key, acceptsAbsence: Bool = false,
        _ generate: @escaping @Sendable (Key, Entry?) async throws -> Generated<Value>
    ) async throws -> Entry? {
        let stored = try stored(key)
        if acceptsAbsence, isAbsent(stored) { return try await entry(forKey: key) }
        let now = rows.store.time.now()
        return try await load([(key, stored)], needsValue: !acceptsAbsence, at: now) {
            Loaded([try await generate(key, $0[0].entry)])
        }[0]
    }

    /// Returns the result of a call that needs one.
    func one<R>(_ key: Key, _ result: R?) throws(CacheError) -> R {
        if let result { return result }
        throw CacheError(
            .invalidConfiguration,
            "The closure that loads key \"\(key)\" of cache \"\(name)\" has returned .none, but the call returns an entry. Call"
                + " value(forKey:generate:) instead.")
    }

    private func valueInMemory(_ keys: some Sequence<Key>) throws(CacheError) -> (known: [Key: Value], rest: [LoadItem])
    {
        var (known, rest, seen) = ([Key: Value](), [LoadItem](), Set<StoredKey>())
        for key in keys where known[key] == nil {
            known[key] = valueInMemory(key)
            if known[key] != nil { continue }
            let stored = try stored(key)
            if seen.insert(stored).inserted { rest.append((key, stored)) }
        }
        if rest.isEmpty && rows.store.isClosed { throw CacheError(StoreError.closed, "load values", cache: name) }
        return (known, rest)
    }

    /// The number of callers that wait for loads.
    package var waitingCallers: Int { loads.waitingCount }

    /// A Boolean value that indicates whether any load runs.
    package var isGenerating: Bool { !loads.isIdle }
}

/// The path of every call that loads values: join a load or begin one, which reads the disk, calls the closure of the program,
/// and stores the result.
extension Cache {
    typealias Entry = CacheEntry<Key, Value>
    package typealias LoadItem = (key: Key, stored: StoredKey)
    /// Loads what rows have no value for.
    package typealias Generate = @Sendable ([LoadRow]) async throws -> Loaded

    /// What a load has for rows.
    package struct Loaded: Sendable {
        /// In the order of the rows; nil for a key that has none.
        var results: [Generated<Value>?]
        /// A Boolean value that indicates whether the callers get them before they are stored.
        var isEarly = false
        /// Stores the results elsewhere, and returns the keys whose values are not to be stored here.
        var store: (@Sendable () async -> Set<StoredKey>)?

        init(_ results: [Generated<Value>?]) { self.results = results }

        package init(
            _ results: [Generated<Value>?], isEarly: Bool, _ store: @escaping @Sendable () async -> Set<StoredKey>
        ) { (self.results, self.isEarly, self.store) = (results, isEarly, store) }
    }

    var loads: Loads<StoredKey> { copies.loads }

    /// Returns the entries of keys, in their order; those that are missing are loaded in a task of their own.
    func load(
        _ keys: [LoadItem], needsValue: Bool, isLook: Bool = false, at now: Int64?,
        within limits: LoadLimits? = nil, isDue: @escaping @Sendable (EntryHeader) -> Bool = { _ in false },
        _ generate: @escaping Generate
    ) async throws -> [Entry?] {
        try await loads.load(
            keys.map { $0.stored }, needsValue: needsValue, isLook: isLook, at: now, within: limits
        ) {
            await self.lead($0, keys, isDue: isDue, isLook: isLook, generate)
        }
    }

    /// Returns the entries of keys, in their order; those that are missing are loaded on this thread.
    ///
    /// Inside a body of a transaction this thread waits for no load, and cannot store: the call throws if a key is missing.
    func load(
        _ keys: [LoadItem], needsValue: Bool, _ generate: ([LoadRow]) throws -> [Generated<Value>?]
    ) throws -> [Entry?] {
        if rows.isInBody { return try look(for: keys).map { $0.live } }
        let now = rows.store.time.now()
        return try loads.load(keys.map { $0.stored }, needsValue: needsValue, at: now) { lead($0, keys, generate) }
    }

    // MARK: One load

    /// Runs a load.
    ///
    /// - Parameters:
    ///   - keys: The keys of the call, of which the load has some.
    ///   - isDue: Decides whether an entry that has not expired is loaded all the same.
    ///   - countsMisses: A Boolean value that indicates whether a caller waits for what is missing.
    ///   - isLook: A Boolean value that indicates whether it only looks for values, which counts as no load.
    func lead(
        _ ticket: LoadTicket, _ keys: [LoadItem], isDue: @escaping @Sendable (EntryHeader) -> Bool = { _ in false },
        countsMisses: Bool = true, isLook: Bool = false, _ generate: Generate
    ) async {
        do {
            let items = items(of: ticket, in: keys)
            let look = try await reading { () throws(CacheError) in
                try self.look(for: items, isDue, countsMisses, countsLoads: !isLook)
            }
            var (made, time) = (LoadedEntries(look), Int64?.none)
            let missing = missing(in: look)
            if !missing.isEmpty {
                let start = rows.store.time.nanoseconds()
                let loaded = try await tracingLoad(missing) { try await generate(missing) }
                if !isLook { time = rows.store.time.nanoseconds() - start }
                try collect(loaded.results, missing, ticket.load, &made)
                // Others learn of an absence once it is remembered.
                if loaded.isEarly, made.absences.isEmpty { loads.deliver(ticket, made.entries, made.storing) }
                if let store = loaded.store { made.drop(await store(), of: missing) }
            }
            let count = made.writes.count
            copies.beginChange(of: count)
            defer { copies.endChange(of: count) }
            do {
                while let next = nextWrites(ticket.load, made) {
                    made.isStored = try await !rows.run(next, "store what was loaded").rows.isEmpty
                }
                if made.hasChanges { try await run(made.takeChanges()) }
            } catch {
                reportUnstored(made, error)
            }
            loads.finish(ticket, .success(made.entries), absences: made.absences, time: time)
        } catch {
            loads.finish(ticket, Result<[Entry?], any Error>.failure(error))
        }
    }

    /// Makes changes, each for itself, in few transactions.
    private func run(_ changes: [Change]) async throws {
        if changes.count < 2 {
            if let change = changes.first { _ = try await rows.run(change, "store what was loaded") }
            return
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for change in changes {
                group.addTask { _ = try await self.rows.run(change, "store what was loaded") }
            }
            try await group.waitForAll()
        }
    }

    private func lead(
        _ ticket: LoadTicket, _ keys: [LoadItem], _ generate: ([LoadRow]) throws -> [Generated<Value>?]
    ) {
        do {
            let look = try look(for: items(of: ticket, in: keys))
            var (made, time) = (LoadedEntries(look), Int64?.none)
            let missing = missing(in: look)
            if !missing.isEmpty {
                let start = rows.store.time.nanoseconds()
                let loaded = try tracingLoad(missing) { try generate(missing) }
                time = rows.store.time.nanoseconds() - start
                try collect(loaded, missing, ticket.load, &made)
            }
            let count = made.writes.count
            copies.beginChange(of: count)
            defer { copies.endChange(of: count) }
            do throws(CacheError) {
                if made.hasChanges {
                    for change in made.takeChanges() { _ = try rows.run(change, "store what was loaded") }
                }
                while let next = nextWrites(ticket.load, made) {
                    made.isStored = try !rows.run(next, "store what was loaded").rows.isEmpty
                }
            } catch {
                reportUnstored(made, error)
            }
            loads.finish(ticket, .success(made.entries), absences: made.absences, time: time)
        } catch {
            loads.finish(ticket, Result<[Entry?], any Error>.failure(error))
        }
    }

    /// Runs a closure of the program, which is told if that takes long.
    private func tracingLoad<R>(_ missing: [LoadRow], _ body: () async throws -> R) async throws -> R {
        // The tier of a shared cache reports for itself.
        guard !keepsCopies, let trace = rows.store.trace else { return try await body() }
        return try await trace.following("load the value", name, Self.onlyKey(missing), .origin, body)
    }

    private func tracingLoad<R>(_ missing: [LoadRow], _ body: () throws -> R) throws -> R {
        guard let trace = rows.store.trace else { return try body() }
        return try trace.following("load the value", name, Self.onlyKey(missing), .origin, body)
    }

    private static func onlyKey(_ rows: [LoadRow]) -> StoredKey? { rows.count == 1 ? rows[0].stored : nil }

    private func missing(in look: [LoadRow]) -> [LoadRow] {
        look.count == 1 && look[0].live == nil ? look : look.filter { $0.live == nil }
    }

    private func items(of ticket: LoadTicket, in keys: [LoadItem]) -> [LoadItem] {
        ticket.places.count == keys.count ? keys : ticket.places.map { keys[$0.inCall] }
    }

    /// What a load finds of a key on the disk.
    package struct LoadRow: Sendable {
        package let key: Key
        package let stored: StoredKey
        /// The place of the key in the load.
        let place: Int
        let hash: UInt64
        let ticket: ReadTicket
        /// The row; nil if there is none.
        var header: EntryHeader?
        /// The entry; nil if there is none, or its value does not decode.
        package var entry: CacheEntry<Key, Value>?
        /// A Boolean value that indicates whether the entry has expired or is due.
        var isOld = false

        /// The entry, unless it is to be loaded.
        var live: Entry? { isOld ? nil : entry }
    }

    /// Reads keys from the disk, and throws if a key is missing whose value could not be stored.
    private func look(
        for keys: [LoadItem], _ isDue: (EntryHeader) -> Bool = { _ in false }, _ countsMisses: Bool = true,
        countsLoads: Bool = true
    ) throws(CacheError) -> [LoadRow] {
        var (isCurrent, missing) = (false, 0)
        let look = try storedRows(keys, isDue, &isCurrent)
        for row in look where row.live == nil { missing += 1 }
        if missing == 0 { return look }
        copies.count { [missing] in
            if countsLoads { $0.loads += missing }
            if countsMisses { $0.misses += missing }
        }
        try throwing("load a value") { () throws(StoreError) in try rows.requireWritable(isCurrent: isCurrent) }
        return look
    }

    /// Reads keys from the disk, in their order, and keeps in memory what has not expired.
    ///
    /// - Parameter isCurrent: Set if a live cache is known to have the declaration.
    func storedRows(
        _ keys: [LoadItem], _ isDue: (EntryHeader) -> Bool, _ isCurrent: inout Bool
    ) throws(CacheError) -> [LoadRow] {
        let (copies, now) = (core.copies, rows.store.time.now())
        // A ticket is older than what is read with it.
        var look = copies.state.withLock { state in
            keys.indices.map { place in
                let hash = copies.seed.hash(keys[place].key)
                return LoadRow(
                    key: keys[place].key, stored: keys[place].stored, place: place, hash: hash,
                    ticket: state.ticket(hash))
            }
        }
        if keys.count == 1 {
            let key = keys[0].stored
            let row = try throwing("read values", key) { () throws(StoreError) in try rows.row(key, &isCurrent) }
            if let row { take(row, into: &look[0], at: now, isDue) }
        } else {
            let all = try throwing("read values") { () throws(StoreError) in try rows.rows(keys.map { $0.stored }) }
            let found = Dictionary(all.map { ($0.header.key, $0) }) { first, _ in first }
            for (place, item) in keys.enumerated() {
                if let row = found[item.stored] { take(row, into: &look[place], at: now, isDue) }
            }
        }
        return look
    }

    /// Takes in what is on the disk; a value that does not decode is reported, and counts as missing.
    private func take(
        _ row: StoredRow, into look: inout LoadRow, at now: Int64, _ isDue: (EntryHeader) -> Bool
    ) {
        look.header = row.header
        guard let value = decodedOrReported(row) else { return }
        let isExpired = row.header.end < now
        look.entry = CacheEntry(look.key, value, row.header, isExpired: isExpired)
        look.isOld = isExpired || isDue(row.header)
        if !look.isOld { offer(value, of: row, look.key, look.hash, at: now, look.ticket) }
    }

    private func decodedOrReported(_ row: StoredRow) -> Value? {
        do throws(CacheError) { return try decode(row) } catch { return nil }
    }

    // MARK: Storing

    /// The entries that a load returns to its callers, and the changes that store them.
    struct LoadedEntries: Sendable {
        /// In the order of the load's keys.
        var entries: [Entry?]
        /// The new values, which are written where the load still stands.
        var writes: [Write] = []
        /// The changes that renew and remove old entries.
        private var changes: [Change] = []
        /// The last moments at which keys are known to have no value, by their places in the load.
        var absences: [Int: Int64] = [:]
        var isStored = false
        /// The first end of the entries; one that is for its callers alone has none.
        var end = Int64.max

        var storing: LoadStoring { LoadStoring(bytes: writes.reduce(0) { $0 + Int($1.entry.size) }, end: end) }

        init(_ look: [LoadRow]) { entries = look.map { $0.live } }

        mutating func add(_ change: Change) { changes.append(change) }

        var hasChanges: Bool { !changes.isEmpty }

        mutating func takeChanges() -> [Change] {
            defer { changes = [] }
            return changes
        }

        /// Stores nothing for keys, and takes none of them as known to have no value.
        mutating func drop(_ keys: Set<StoredKey>, of rows: [LoadRow]) {
            if keys.isEmpty { return }
            writes.removeAll { keys.contains($0.entry.key) }
            for row in rows where keys.contains(row.stored) { absences[row.place] = nil }
        }
    }

    /// Turns the results of the closure into entries and changes.
    private func collect(
        _ results: [Generated<Value>?], _ missing: [LoadRow], _ load: Int, _ made: inout LoadedEntries
    ) throws(CacheError) {
        let (now, rule, copies) = (rows.store.time.now(), maxAge.rule, core.copies)
        for place in missing.indices {
            let row = missing[place]
            let (key, stored) = (row.key, row.stored)
            switch results[place]?.outcome {
            case nil: continue
            case .value(let value, let attributes), .unstored(let value, let attributes):
                var meta = RowMeta()
                meta.extendedData = attributes.extendedData
                var entry = EntryWrite(key: stored, payload: Data(), writtenAt: now, meta: meta)
                if case .value = results[place]?.outcome {
                    do throws(CacheError) {
                        made.writes.append(try write(value, forKey: key, attributes))
                        entry = made.writes[made.writes.count - 1].entry
                    } catch {
                        report(error, .writeFailed, key)
                    }
                }
                // The old entry's number of accesses goes on.
                let header = rows.header(of: entry, rule, row.entry == nil ? nil : row.header)
                made.entries[row.place] = CacheEntry(key, value, header)
                if case .value = results[place]?.outcome {
                    made.end = Swift.min(made.end, header.end)
                } else {
                    made.end = .min
                }
            case .notModified:
                guard let entry = row.entry, let header = row.header else {
                    throw CacheError(
                        .invalidConfiguration,
                        "The closure that loads key \"\(stored.name)\" of cache \"\(name)\" has returned .notModified without"
                            + " an old value. Return it only if the closure got an entry.")
                }
                made.entries[row.place] = CacheEntry(key, entry.value, header.renewed(at: now, rule))
                let claim = LoadClaim(loads: loads, keys: [stored], load: load)
                made.add(change(key, stored, .renew(header, at: now), by: .load(load), if: claim))
            case .absent(let age):
                try age.requireNumber("the absence of key \"\(stored.name)\" in cache \"\(name)\"")
                let end = age.rule.drawn.end(writtenAt: now, accessedAt: now, id: 0)
                if end >= now { made.absences[row.place] = end }
                if row.header == nil { continue }
                let (claim, hash) = (LoadClaim(loads: loads, keys: [stored], load: load), row.hash)
                made.add(
                    Change(.remove([stored]), by: .load(load), if: claim, in: copies) {
                        if !$0.rows.isEmpty { copies.removed([(key, stored, hash)], $0, at: now, &$1) }
                    })
            }
        }
    }

    /// Returns the next change that writes the new values; nil if there is none.
    private func nextWrites(_ load: Int, _ made: LoadedEntries) -> Change? {
        if made.isStored { return nil }
        // Asked again if a key was overtaken since.
        let isWhole = made.writes.count == 1 && loads.stands(load, at: made.writes[0].entry.key)
        let writes = isWhole ? made.writes : made.writes.filter { loads.stands(load, at: $0.entry.key) }
        if writes.isEmpty { return nil }
        let claim = LoadClaim(
            loads: loads, keys: writes.map { $0.entry.key }, tags: writes.map { $0.entry.meta.tags }, load: load)
        return change(writes, by: .load(load), if: claim)
    }

    /// Reports that results are not stored, unless the cache was purged or the last caller has left.
    private func reportUnstored(_ made: LoadedEntries, _ error: any Error) {
        guard let error = error as? CacheError, error.code != .superseded else { return }
        report(error, .writeFailed, made.writes.first?.copy.key)
    }

    /// Returns whether a key is known to have no value.
    func isAbsent(_ stored: StoredKey) -> Bool { loads.isAbsent(stored, at: rows.store.time.now()) }
}

/// A load stores its results if it stands at all of their keys, and no other load does after that.
private struct LoadClaim: ChangeCondition {
    let loads: Loads<StoredKey>
    let keys: [StoredKey]
    var tags: [[String]] = []
    let load: Int

    func holds() -> Bool { loads.claim(keys, tags: tags, of: load) }
}
