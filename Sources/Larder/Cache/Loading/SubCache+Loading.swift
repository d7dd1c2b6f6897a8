internal import Foundation
internal import Synchronization

extension SubCache {
    typealias Entry = CacheEntry<Key, Value>

    /// The value that memory has by the exact time; nil where only the disk can tell.
    func glance(_ key: Key, _ terms: CacheTerms<Value>) -> Value? {
        let hash = seed.hash(key)
        prepareToNoteUses()
        let now = terms.now()
        let round = front.withLock { $0.watch }.round()
        let look = front.withLock { $0.look(key, hash: hash, rule: terms.rule, now: now, round: round) }
        if case .hit(let value) = look { return value }
        return nil
    }

    /// The live entries of these keys, which are read from disk and kept in memory; what does not decode is not there.
    func findEntries(
        _ keys: [Key], _ terms: CacheTerms<Value>, countsMisses: Bool = true
    ) throws(CacheError) -> [Key: Entry] {
        var wanted: [(key: Key, hash: UInt64, stored: StoredKey)] = []
        for key in keys { wanted.append((key, seed.hash(key), try keyCodec.stored(key, cache: name))) }
        prepareToNoteUses()
        takeOverEvicted()
        let watch = front.withLock { $0.watch }
        let round = watch.round()
        let (sequence, uses) = front.withLock { front in
            (front.offers.sequence, wanted.map { front.accessed($0.key, hash: $0.hash) })
        }
        var found: [Key: Entry] = [:]
        for (index, row) in try ledger.rows(wanted.map(\.stored), round).enumerated() {
            let item = wanted[index]
            let now = terms.now()
            guard let row, let facts = ledger.seen(item.stored, row.facts, now: now, accessedAt: uses[index]) else {
                if countsMisses { ledger.count { $0.misses += 1 } }
                continue
            }
            if facts.isExpired(terms.rule, now: now) {
                if countsMisses { ledger.noteMiss(item.stored, expired: facts.revision) }
                continue
            }
            let judged = FoundRow(row: row, facts: facts, moment: now)
            guard let filled = try ledger.filled(item.stored, judged, terms.age),
                case .value(let value) = taken(
                    filled, item.key, item.hash, item.stored, terms, since: sequence, watch, round: round)
            else { continue }
            found[item.key] = Entry(
                key: item.key, value: value, extendedData: filled.row.extended,
                metadata: EntryMetadata(filled.facts, rule: terms.rule, accessedAt: now), isExpired: false)
        }
        return found
    }

    /// What is left of a key's entry, over or not, and no use of it; nil where nothing decodes.
    func remains(of key: Key, _ terms: CacheTerms<Value>) throws(CacheError) -> (
        entry: Entry, draft: GeneratedDraft<Value>
    )? {
        let stored = try keyCodec.stored(key, cache: name)
        guard let (row, facts) = try ledger.row(stored, terms.age, accessedAt: accessed(key)),
            let (row, facts) = try ledger.filled(stored, row, facts, terms.age)
        else { return nil }
        do throws(CacheError) {
            guard let payload = row.payload else { throw damaged(stored) }
            let entry = Entry(
                key: key, value: try decode(row, stored, terms), extendedData: row.extended,
                metadata: EntryMetadata(facts, rule: terms.rule, accessedAt: facts.accessedAt),
                isExpired: facts.isExpired(terms.rule, now: terms.now()))
            let kept = KeptEntry(facts: facts, payload: payload, cost: row.cost.map { Int(clamping: $0) })
            return (entry, GeneratedDraft(value: entry.value, extendedData: entry.extendedData, kept: kept))
        } catch {
            _ = failed(stored, revision: facts.revision, error, terms)
            return nil
        }
    }

    /// Makes of a draft what is to be written; no lock is held, and no file written.
    private func prepare(
        _ draft: GeneratedDraft<Value>, forKey key: Key, _ terms: CacheTerms<Value>
    ) throws(CacheError) -> PreparedWrite<Key, Value> {
        guard let kept = draft.kept else {
            var write = try encoded(
                draft.value, forKey: key, cost: draft.cost, age: draft.maxAge, extended: draft.extendedData, terms)
            if !draft.tags.isEmpty { write.content.row.setTags(draft.tags) }
            return write
        }
        var write = prepared(
            draft.value, forKey: key, try keyCodec.stored(key, cache: name), kept.payload, cost: kept.cost,
            age: kept.facts.age, extended: draft.extendedData, isPinned: kept.facts.isPinned, terms)
        write.content.row.keepsTags = true
        return write
    }

    /// Returns what is to be stored for a key; nil if there is no value, which is noted.
    private func draft(
        of loaded: LoadedValue<Value>, forKey key: Key, _ permit: LoadPermit<Key>, _ terms: CacheTerms<Value>
    ) throws(CacheError) -> GeneratedDraft<Value>? {
        switch loaded.generated.outcome {
        case .value(let draft): return draft
        case .notModified:
            if let old = loaded.old { return old }
            if let old = try remains(of: key, terms) { return old.draft }
            throw CacheError(
                .invalidConfiguration,
                "The generator for key \(key) of cache \"\(name)\" said that nothing was modified, but was given no"
                    + " old entry. Give a value in that case.")
        case .none(let age):
            try check(age)
            guard permit.mayStore(key) else { return nil }
            try removeRest(of: key, terms)
            permit.noteAbsence(key, for: age.rule, now: terms.now())
            return nil
        }
    }

    /// Removes what is left of an entry, live or expired.
    ///
    /// Its load is not overtaken by that.
    private func removeRest(of key: Key, _ terms: CacheTerms<Value>) throws(CacheError) {
        let stored = try keyCodec.stored(key, cache: name)
        guard let (_, facts) = try ledger.row(stored, terms.age, accessedAt: accessed(key)) else { return }
        let victim = RowVictim(stored, facts)
        try ledger.run(WriteRequest(.evict([victim], .call), to: ledger, removal(of: key)))
    }

    /// Writes what a load has loaded as far as its permit goes, and says what callers get.
    func store(
        _ loaded: [(key: Key, value: LoadedValue<Value>)], _ permit: LoadPermit<Key>, _ terms: CacheTerms<Value>
    ) throws(CacheError) -> [Key: Entry] {
        var writes: [PreparedWrite<Key, Value>] = []
        var unstored: [Key: Entry] = [:]
        do throws(CacheError) {
            for (key, value) in loaded {
                guard let draft = try draft(of: value, forKey: key, permit, terms) else { continue }
                do throws(CacheError) {
                    writes.append(try prepare(draft, forKey: key, terms))
                } catch {
                    guard error.code == .tooLarge else { throw error }
                    // Its callers get it all the same.
                    unstored[key] = entry(of: draft, forKey: key, terms)
                    report(.limitReached, key: storedIfAny(key), error.message, .warning, error: error)
                }
            }
            if writes.isEmpty { return unstored }
            try spill(&writes, terms)
            let made = writes
            let size = made.reduce(0) { $0 + $1.content.row.size }
            let request = setRequest(made, permit)
            try ledger.store.evictingOnFullDisk(size, isAllowed: evictsOnFullDisk) { () throws(CacheError) in
                try ledger.run(request)
            }
            let written = Set(request.outcome.indices)
            for (index, write) in writes.enumerated() where !written.contains(index) {
                write.content.spilled?.discard()
            }
            reportTooCostly(request.outcome.indices.map { writes[$0] })
        } catch {
            discard(writes)
            // Purged or removed meanwhile: it is nobody's any more but theirs who wait for it.
            if error.code != .superseded { throw error }
        }
        let entries = unstored.merging(writes.map { ($0.key, entry(of: $0, terms)) }) { first, _ in first }
        let beaten = entries.keys.filter(permit.isBeaten)
        if beaten.isEmpty { return entries }
        return entries.merging(try findEntries(beaten, terms)) { $1 }
    }

    /// The entry of a value that was loaded and is not stored.
    private func entry(of draft: GeneratedDraft<Value>, forKey key: Key, _ terms: CacheTerms<Value>) -> Entry {
        let now = terms.now()
        let facts = EntryFacts(
            id: 0, revision: 0, size: 0, writtenAt: now, accessedAt: now, age: draft.maxAge.map { StoredAge($0.rule) },
            isPinned: false, file: nil, checksum: 0)
        return Entry(
            key: key, value: draft.value, extendedData: draft.extendedData,
            metadata: EntryMetadata(facts, rule: terms.rule, accessedAt: now, isMade: true), isExpired: false)
    }

    private func entry(of write: PreparedWrite<Key, Value>, _ terms: CacheTerms<Value>) -> Entry {
        let row = write.content.row
        let facts = EntryFacts(
            id: 0, revision: 0, size: Int64(row.size), writtenAt: row.writtenAt, accessedAt: row.writtenAt,
            age: row.age, isPinned: row.isPinned ?? false, file: write.content.spilled == nil ? nil : "", checksum: 0)
        return Entry(
            key: write.key, value: write.value, extendedData: row.extended,
            metadata: EntryMetadata(facts, rule: terms.rule, accessedAt: row.writtenAt, isMade: true), isExpired: false)
    }
}
