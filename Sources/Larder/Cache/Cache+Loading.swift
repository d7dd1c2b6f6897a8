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
        let loaded = try load(rest, needsValue: false) {
            try generate($0.missing.map { $0.key }).mapValues { .value($0) }
        }
        return rest.reduce(into: known) { $0[$1.key] = loaded[$1.stored]?.value }
    }

    /// Returns the values of many keys; one call of `generate` in a task of its own loads those that are missing.
    ///
    /// Keys that `generate` returns nothing for stay without a value.
    public func values(
        forKeys keys: some Sequence<Key>, generate: @escaping @Sendable ([Key]) async throws -> [Key: Value]
    ) async throws -> [Key: Value] {
        let (known, rest) = try valueInMemory(keys)
        let loaded = try await load(rest, needsValue: false) {
            try await generate($0.missing.map { $0.key }).mapValues { .value($0) }
        }
        return rest.reduce(into: known) { $0[$1.key] = loaded[$1.stored]?.value }
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
        return try load([(key, stored)], needsValue: !acceptsAbsence) {
            [key: try generate(key, $0.old[stored]?.entry)]
        }[stored]
    }

    func loadedEntry(
        _ key: Key, acceptsAbsence: Bool = false,
        _ generate: @escaping @Sendable (Key, Entry?) async throws -> Generated<Value>
    ) async throws -> Entry? {
        let stored = try stored(key)
        if acceptsAbsence, isAbsent(stored) { return try await entry(forKey: key) }
        return try await load([(key, stored)], needsValue: !acceptsAbsence) {
            [key: try await generate(key, $0.old[stored]?.entry)]
        }[stored]
    }

    /// Returns the result of a call that needs one.
    func one<R>(_ key: Key, _ result: R?) throws(CacheError) -> R {
        if let result { return result }
        throw CacheError(
            .invalidConfiguration,
            "The closure that loads key \(key) of cache \"\(name)\" has returned .none, but the call returns an entry. Call"
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
    typealias LoadTicket = Loads<StoredKey, Key, Entry>.Ticket
    package typealias LoadResult = [Key: Generated<Value>]

    var loads: Loads<StoredKey, Key, Entry> { copies.loads }

    /// Returns the entries of keys; those that are missing are loaded in a task of their own.
    func load(
        _ keys: [LoadItem], needsValue: Bool, _ generate: @escaping @Sendable (LoadedRows) async throws -> LoadResult
    ) async throws -> [StoredKey: Entry] {
        try await loads.load(keys, needsValue: needsValue) { await self.lead($0, generate) }
    }

    /// Returns the entries of keys; those that are missing are loaded on this thread.
    ///
    /// Inside a body of a transaction this thread waits for no load, and cannot store: the call throws if a key is missing.
    func load(
        _ keys: [LoadItem], needsValue: Bool, _ generate: (LoadedRows) throws -> LoadResult
    ) throws -> [StoredKey: Entry] {
        if rows.isInBody { return try look(for: keys).live }
        return try loads.load(keys, needsValue: needsValue) { lead($0, generate) }
    }

    // MARK: One load

    /// Runs a load.
    ///
    /// - Parameters:
    ///   - isDue: Decides whether an entry that has not expired is loaded all the same.
    ///   - countsMisses: A Boolean value that indicates whether a caller waits for what is missing.
    func lead(
        _ ticket: LoadTicket, isDue: @escaping @Sendable (EntryHeader) -> Bool = { _ in false },
        countsMisses: Bool = true,
        _ generate: @Sendable (LoadedRows) async throws -> LoadResult
    ) async {
        do {
            let look = try await reading { () throws(CacheError) in try self.look(for: ticket.keys, isDue, countsMisses)
            }
            var made = LoadedEntries(entries: look.live)
            if !look.missing.isEmpty { try collect(try await generate(look), look, ticket.load, &made) }
            let count = made.writes.count
            copies.beginChange(of: count)
            defer { copies.endChange(of: count) }
            do {
                while let next = nextChange(ticket.load, &made) {
                    made.isStored = try await !rows.run(next, "store what was loaded").rows.isEmpty
                }
            } catch {
                reportUnstored(made, error)
            }
            loads.finish(ticket, .success(made.entries), absentUntil: made.absence)
        } catch {
            loads.finish(ticket, .failure(error), absentUntil: nil)
        }
    }

    private func lead(_ ticket: LoadTicket, _ generate: (LoadedRows) throws -> LoadResult) {
        do {
            let look = try look(for: ticket.keys)
            var made = LoadedEntries(entries: look.live)
            if !look.missing.isEmpty { try collect(try generate(look), look, ticket.load, &made) }
            let count = made.writes.count
            copies.beginChange(of: count)
            defer { copies.endChange(of: count) }
            do throws(CacheError) {
                while let next = nextChange(ticket.load, &made) {
                    made.isStored = try !rows.run(next, "store what was loaded").rows.isEmpty
                }
            } catch {
                reportUnstored(made, error)
            }
            loads.finish(ticket, .success(made.entries), absentUntil: made.absence)
        } catch {
            loads.finish(ticket, .failure(error), absentUntil: nil)
        }
    }

    /// The entries that a load finds on the disk.
    package struct LoadedRows: Sendable {
        var live: [StoredKey: Entry] = [:]
        package var missing: [LoadItem] = []
        /// The missing keys that have rows all the same.
        var rows: Set<StoredKey> = []
        /// The entries that have expired or are due.
        package var old: [StoredKey: (entry: CacheEntry<Key, Value>, header: EntryHeader)] = [:]
    }

    /// Reads keys from the disk, and throws if a key is missing whose value could not be stored.
    private func look(
        for keys: [LoadItem], _ isDue: (EntryHeader) -> Bool = { _ in false }, _ countsMisses: Bool = true
    ) throws(CacheError) -> LoadedRows {
        let (copies, now) = (core.copies, rows.store.time.now())
        let hashes = keys.map { copies.seed.hash($0.key) }
        let tickets = copies.state.withLock { state in hashes.map { state.ticket($0) } }
        let only = keys.count == 1 ? keys[0].stored : nil
        var (first, isCurrent) = (StoredRow?.none, false)
        let found = try throwing("read values", only) { () throws(StoreError) -> [StoredKey: StoredRow] in
            if let only {
                first = try rows.row(only, &isCurrent)
                return [:]
            }
            return Dictionary(try rows.rows(keys.map { $0.stored }).map { ($0.header.key, $0) }) { first, _ in first }
        }
        var look = LoadedRows()
        for (index, item) in keys.enumerated() {
            let row = only == nil ? found[item.stored] : first
            // A value that does not decode is reported, and counts as missing.
            guard let row, let value = decodedOrReported(row) else {
                look.missing.append(item)
                if row != nil { look.rows.insert(item.stored) }
                continue
            }
            let isExpired = row.header.end < now
            let entry = CacheEntry(item.key, value, row.header, isExpired: isExpired)
            if isExpired || isDue(row.header) {
                look.missing.append(item)
                look.rows.insert(item.stored)
                look.old[item.stored] = (entry, row.header)
            } else {
                offer(value, of: row, item.key, hashes[index], at: now, tickets[index])
                look.live[item.stored] = entry
            }
        }
        if look.missing.isEmpty { return look }
        copies.count { [count = look.missing.count] in
            $0.loads += count
            if countsMisses { $0.misses += count }
        }
        try throwing("load a value") { () throws(StoreError) in try rows.requireWritable(isCurrent: isCurrent) }
        return look
    }

    private func decodedOrReported(_ row: StoredRow) -> Value? {
        do throws(CacheError) { return try decode(row) } catch { return nil }
    }

    // MARK: Storing

    /// The entries that a load returns to its callers, and the changes that store them.
    struct LoadedEntries: Sendable {
        var entries: [StoredKey: Entry]
        /// The new values, which are written where the load still stands.
        var writes: [Write] = []
        /// The change that renews or removes the old entry.
        var change: Change?
        var absence: Int64?
        var isStored = false
    }

    /// Turns the result of the closure into entries and changes.
    private func collect(
        _ result: LoadResult, _ look: LoadedRows, _ load: Int, _ made: inout LoadedEntries
    ) throws(CacheError) {
        let (now, rule, copies) = (rows.store.time.now(), maxAge.rule, core.copies)
        for (key, stored) in look.missing {
            let old = look.old[stored]
            switch result[key]?.outcome {
            case nil: continue
            case .value(let value, let attributes), .unstored(let value, let attributes):
                var meta = RowMeta()
                meta.extendedData = attributes.extendedData
                var entry = EntryWrite(key: stored, payload: Data(), writtenAt: now, meta: meta)
                if case .value = result[key]?.outcome {
                    do throws(CacheError) {
                        made.writes.append(try write(value, forKey: key, attributes))
                        entry = made.writes[made.writes.count - 1].entry
                    } catch {
                        report(error, .writeFailed, key)
                    }
                }
                made.entries[stored] = CacheEntry(key, value, rows.header(of: entry, rule, old?.header))
            case .notModified:
                guard let (entry, header) = old else {
                    throw CacheError(
                        .invalidConfiguration,
                        "The closure that loads key \(stored.name) of cache \"\(name)\" has returned .notModified without"
                            + " an old value. Return it only if the closure got an entry.")
                }
                made.entries[stored] = CacheEntry(key, entry.value, header.renewed(at: now, rule))
                made.change = change(key, stored, .renew(header, at: now), by: .load(load))
            case .absent(let age):
                try age.requireNumber("the absence of key \(stored.name) in cache \"\(name)\"")
                made.absence = age.rule.end(writtenAt: now, accessedAt: now)
                if !look.rows.contains(stored) { continue }
                let (claim, hash) = (LoadClaim(loads: loads, keys: [stored], load: load), copies.seed.hash(key))
                made.change = Change(.remove([stored]), by: .load(load), if: claim, in: copies) {
                    if !$0.rows.isEmpty { copies.removed([(key, stored, hash)], $0, &$1) }
                }
            }
        }
    }

    /// Returns the next change that stores the results; nil if there is none.
    private func nextChange(_ load: Int, _ made: inout LoadedEntries) -> Change? {
        if let change = made.change.take() { return change }
        // Asked again if a key was overtaken since.
        let writes = made.isStored ? [] : made.writes.filter { loads.stands(load, at: $0.entry.key) }
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
private struct LoadClaim<Key: Sendable, Output: Sendable>: ChangeCondition {
    let loads: Loads<StoredKey, Key, Output>
    let keys: [StoredKey]
    var tags: [[String]] = []
    let load: Int

    func holds() -> Bool { loads.claim(keys, tags: tags, of: load) }
}
