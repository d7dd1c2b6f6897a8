public import Foundation
internal import Synchronization

extension Cache {
    /// Reads the value of a key with everything that is stored beside it.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - allowingExpired: Whether an entry that is over is given too, as long as no sweep has met it.
    public func entry(
        forKey key: Key, allowingExpired: Bool = false
    ) throws(CacheError) -> CacheEntry<Key, Value>? {
        guard let (row, facts, stored) = try filledRow(forKey: key, evenIfOver: allowingExpired) else {
            ledger.count { $0.misses += 1 }
            return nil
        }
        let now = terms.now()
        let isExpired = facts.isExpired(terms.rule, now: now)
        if isExpired && !allowingExpired {
            ledger.noteMiss(stored, expired: facts.revision)
            return nil
        }
        let value: Value
        do throws(CacheError) {
            value = try core.decode(row, stored, terms)
            ledger.count { $0.diskHits += 1 }
        } catch {
            ledger.count { $0.misses += 1 }
            let finding = core.failed(
                stored, revision: facts.revision, isInFile: row.facts.file != nil, error, terms)
            if case .failure(let error) = finding { throw error }
            return nil
        }
        if !isExpired { core.noteUse(of: key, stored, facts, at: now) }
        let metadata = EntryMetadata(facts, rule: terms.rule, accessedAt: isExpired ? facts.accessedAt : now)
        return CacheEntry(
            key: key, value: value, extendedData: row.extended, metadata: metadata, isExpired: isExpired)
    }

    /// What is known of a key's entry, without decoding its value; nil if there is no usable value.
    public func metadata(forKey key: Key) throws(CacheError) -> EntryMetadata? {
        guard let facts = try liveFacts(forKey: key) else { return nil }
        return EntryMetadata(facts, rule: terms.rule, accessedAt: facts.accessedAt)
    }

    /// The bytes that were stored beside a key's value; nil if there are none, or no usable value.
    ///
    /// As with metadata, it does not count as a use.
    public func extendedData(forKey key: Key) throws(CacheError) -> Data? {
        guard let (row, facts, _) = try row(forKey: key) else { return nil }
        return facts.isExpired(terms.rule, now: terms.now()) ? nil : row.extended
    }

    /// Whether `value(forKey:)` would give a value, as far as is known without decoding it.
    ///
    /// It does not count as a use.
    public func contains(_ key: Key) throws(CacheError) -> Bool {
        try liveFacts(forKey: key) != nil
    }

    /// The values of those keys that have one, as of one moment.
    public func values(forKeys keys: some Sequence<Key>) throws(CacheError) -> [Key: Value] {
        _ = try manager.store()
        return try core.findMany(Array(keys), terms)
    }

    /// The file of a key's payload, where that has outgrown its row; nil if it has not, or there is no usable value.
    ///
    /// Asking for it counts as a use.
    /// The file is there until the key is written or removed, and whoever has it open by then goes on reading the old
    /// bytes. It is read-only, and nobody but the store may change or delete it. Where no manager of the process may
    /// write, the store cannot note that the URL was handed out: the file may be overwritten once its key is written.
    public func fileURL(forKey key: Key) throws(CacheError) -> URL? {
        _ = try manager.store()
        let stored = try core.keyCodec.stored(key, cache: name)
        let now = terms.now()
        let found = try ledger.fileURL(stored, terms.age, accessedAt: core.accessed(key, now: now)) { revision in
            _ = core.failed(stored, revision: revision, isInFile: true, core.damaged(stored), terms)
        }
        guard let (url, facts) = found else { return nil }
        core.noteUse(of: key, stored, facts, at: now)
        return url
    }

    // MARK: - What they need

    private func liveFacts(forKey key: Key) throws(CacheError) -> EntryFacts? {
        _ = try manager.store()
        let stored = try core.keyCodec.stored(key, cache: name)
        let accessedAt = core.accessed(key, now: terms.now())
        guard let facts = try ledger.facts(stored, terms.age, accessedAt: accessedAt) else { return nil }
        return facts.isExpired(terms.rule, now: terms.now()) ? nil : facts
    }

    /// The row of a key, with its payload in hand unless it is over and not wanted then.
    private func filledRow(
        forKey key: Key, evenIfOver: Bool
    ) throws(CacheError) -> (row: EntryRow, facts: EntryFacts, stored: StoredKey)? {
        guard let found = try row(forKey: key) else { return nil }
        if !evenIfOver, found.facts.isExpired(terms.rule, now: terms.now()) { return found }
        guard let (row, facts) = try ledger.filled(found.stored, found.row, found.facts, terms.age) else { return nil }
        return (row, facts, found.stored)
    }

    private func row(
        forKey key: Key
    ) throws(CacheError) -> (row: EntryRow, facts: EntryFacts, stored: StoredKey)? {
        _ = try manager.store()
        let stored = try core.keyCodec.stored(key, cache: name)
        let accessedAt = core.accessed(key, now: terms.now())
        guard let (row, facts) = try ledger.row(stored, terms.age, accessedAt: accessedAt) else { return nil }
        return (row, facts, stored)
    }
}
