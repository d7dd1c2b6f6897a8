internal import Foundation
internal import LarderLocks
internal import LarderSQLite
internal import LarderStore

/// The path of every call that loads values: join a load or begin one, which reads the disk, calls the closure of the program,
/// and stores the result.
extension Cache {
    typealias Entry = CacheEntry<Key, Value>
    typealias LoadItem = Loads<StoredKey, Key, Entry>.Item
    typealias LoadTicket = Loads<StoredKey, Key, Entry>.Ticket
    typealias LoadResult = [Key: Generated<Value>]

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
            if !look.missing.isEmpty { try take(try await generate(look), look, ticket.load, &made) }
            let count = made.writes.count
            copies.beginChange(of: count)
            defer { copies.endChange(of: count) }
            do {
                while let next = nextRequest(ticket.load, &made) {
                    made.isStored = try await !run(next, "store what was loaded").rows.isEmpty
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
            if !look.missing.isEmpty { try take(try generate(look), look, ticket.load, &made) }
            let count = made.writes.count
            copies.beginChange(of: count)
            defer { copies.endChange(of: count) }
            do throws(CacheError) {
                while let next = nextRequest(ticket.load, &made) {
                    made.isStored = try !run(next, "store what was loaded").rows.isEmpty
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
    struct LoadedRows: Sendable {
        var live: [StoredKey: Entry] = [:]
        var missing: [LoadItem] = []
        /// The missing keys that have rows all the same.
        var rows: Set<StoredKey> = []
        /// The entries that have expired or are due.
        var old: [StoredKey: (entry: Entry, header: EntryHeader)] = [:]
    }

    /// Reads keys from the disk, and throws if a key is missing whose value could not be stored.
    private func look(
        for keys: [LoadItem], _ isDue: (EntryHeader) -> Bool = { _ in false }, _ countsMisses: Bool = true
    ) throws(CacheError) -> LoadedRows {
        let (copies, now) = (shared.copies, rows.store.time.now())
        let hashes = keys.map { copies.seed.hash($0.key) }
        let tickets = copies.state.withLock { state in hashes.map { state.ticket($0) } }
        let found = try throwing("read values", keys.count == 1 ? keys[0].stored : nil) { () throws(StoreError) in
            keys.count == 1 ? try [rows.row(keys[0].stored)].compactMap(\.self) : try rows.rows(keys.map { $0.stored })
        }
        let byKey = Dictionary(found.map { ($0.header.key, $0) }) { first, _ in first }
        var look = LoadedRows()
        for (index, item) in keys.enumerated() {
            // A value that does not decode is reported, and counts as missing.
            guard let row = byKey[item.stored], let value = decodedOrReported(row) else {
                look.missing.append(item)
                if byKey[item.stored] != nil { look.rows.insert(item.stored) }
                continue
            }
            let isExpired = row.header.end < now
            let entry = CacheEntry(item.key, value, row.header, isExpired: isExpired)
            if isExpired || isDue(row.header) {
                look.missing.append(item)
                look.rows.insert(item.stored)
                look.old[item.stored] = (entry, row.header)
            } else {
                take(value, of: row, item.key, hashes[index], at: now, tickets[index])
                look.live[item.stored] = entry
            }
        }
        if look.missing.isEmpty { return look }
        copies.count { [count = look.missing.count] in
            $0.loads += count
            if countsMisses { $0.misses += count }
        }
        try throwing("load a value") { () throws(StoreError) in try rows.requireWritable() }
        return look
    }

    private func decodedOrReported(_ row: StoredRow) -> Value? {
        do throws(CacheError) { return try decode(row) } catch { return nil }
    }

    // MARK: Storing

    /// The entries that a load returns to its callers, and the requests that store them.
    struct LoadedEntries: Sendable {
        var entries: [StoredKey: Entry]
        /// The new values, which are written where the load still stands.
        var writes: [Write] = []
        /// The request that renews or removes the old entry.
        var change: (RowOperation, CacheRows.Apply)?
        var absence: Int64?
        var isStored = false
    }

    /// Turns the result of the closure into entries and requests.
    private func take(
        _ result: LoadResult, _ look: LoadedRows, _ load: Int, _ made: inout LoadedEntries
    ) throws(CacheError) {
        let (now, rule, copies) = (rows.store.time.now(), maxAge.rule, shared.copies)
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
                made.change = changing(key, stored, .renew(header, at: now))
            case .absent(let age):
                try age.requireNumber("the absence of key \(stored.name) in cache \"\(name)\"")
                made.absence = age.rule.end(writtenAt: now, accessedAt: now)
                if !look.rows.contains(stored) { continue }
                let (loads, hash) = (loads, copies.seed.hash(key))
                made.change = (
                    .remove([stored], if: { loads.claim([stored], of: load) }),
                    { if !$0.rows.isEmpty { copies.removed([(key, stored, hash)], $0, &$1, by: load) } }
                )
            }
        }
    }

    /// Returns the next request that stores the results; nil if there is none.
    private func nextRequest(_ load: Int, _ made: inout LoadedEntries) -> (RowOperation, CacheRows.Apply)? {
        if let change = made.change.take() { return change }
        let (copies, loads) = (shared.copies, loads)
        // Asked again if a key was overtaken since.
        let writes = made.isStored ? [] : made.writes.filter { loads.stands(load, at: $0.entry.key) }
        if writes.isEmpty { return nil }
        let (keys, values) = (writes.map { $0.entry.key }, writes.map { $0.copy })
        let tags = writes.map { $0.entry.meta.tags }
        return (
            .put(writes.map { $0.entry }, if: { loads.claim(keys, tags: tags, of: load) }),
            { copies.wrote(values, $0, &$1, by: load) }
        )
    }

    /// Reports that results are not stored, unless the cache was purged or the last caller has left.
    private func reportUnstored(_ made: LoadedEntries, _ error: any Error) {
        guard let error = error as? CacheError, error.code != .superseded else { return }
        report(error, .writeFailed, made.writes.first?.copy.key)
    }

    /// Returns whether a key is known to have no value.
    func isAbsent(_ stored: StoredKey) -> Bool { loads.isAbsent(stored, at: rows.store.time.now()) }
}
