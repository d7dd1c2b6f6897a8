internal import Foundation
internal import Synchronization

/// What a read found.
enum Finding<Value: Sendable>: Sendable {
    case value(Value)
    case nothing
    /// It is there and cannot be read; this is the first time that it is met.
    case failure(CacheError)
}

extension SubCache {
    /// Reads a key's value the long way: memory by the exact time, then disk.
    func find(_ key: Key, _ terms: CacheTerms<Value>) throws(CacheError) -> Finding<Value> {
        let stored = try keyCodec.stored(key, cache: name)
        let hash = seed.hash(key)
        guard front.withLock({ $0.holdsCopies }) else {
            return try findAlone(key, terms).map { .value($0) } ?? .nothing
        }
        prepareToNoteUses()
        while true {
            let now = terms.now()
            // Each time: another database may have come with another watch.
            let watch = front.withLock { $0.watch }
            let round = watch.round()
            switch front.withLock({ $0.look(key, hash: hash, rule: terms.rule, now: now, round: round) }) {
            case .hit(let value): return .value(value)
            case .over(let revision):
                ledger.noteMiss(stored, expired: revision)
                return .nothing
            case .absent(let sequence):
                takeOverEvicted()
                guard let found = try ledger.find(stored, terms.age, round) else { return .nothing }
                return taken(found, key, hash, stored, terms, since: sequence, watch, round: round)
            case .future: ledger.clockWasSetBack(to: now)
            case .unsure(let revision):
                let facts = try ledger.facts(stored, terms.age, accessedAt: nil)
                let dropped = front.withLock { front in
                    // What was seen of another database confirms nothing: the next turn asks by the new watch.
                    guard front.watch === watch else { return nil as LRUTable<Key, HotEntry<Value>>.Node? }
                    if let facts, facts.revision == revision {
                        front.confirm(key, hash: hash, revision: revision, accessedAt: facts.accessedAt, round: round)
                        return nil
                    }
                    return front.drop(key, hash: hash, unlessConfirmed: round)
                }
                _ = consume dropped
            }
        }
    }

    /// Reads a key's value past a memory that holds nothing.
    ///
    /// Compiled in the user's module: what is generic and is not specialised asks the runtime for its types at every step,
    /// which took longer than the row.
    @inlinable
    func findAlone(_ key: Key, _ terms: CacheTerms<Value>) throws(CacheError) -> Value? {
        let stored = try keyCodec.stored(key, cache: name)
        guard let found = try ledger.findAlone(stored, terms.age) else { return nil }
        guard let payload = found.bytes else { return try unread(found, stored, damaged(stored), terms) }
        do throws(CacheError) {
            return try terms.codec.decode(payload, cache: name, key: stored.description)
        } catch {
            return try unread(found, stored, error, terms)
        }
    }

    /// What a read gives of a row that it could not read after all.
    @usableFromInline
    func unread(
        _ found: FoundPayload, _ stored: StoredKey, _ error: CacheError, _ terms: CacheTerms<Value>
    ) throws(CacheError) -> Value? {
        ledger.undoHit(stored)
        let finding = failed(stored, revision: found.revision, isInFile: found.isInFile, error, terms)
        if case .failure(let error) = finding { throw error }
        return nil
    }

    /// Sees to it that hits from now on are written down.
    func prepareToNoteUses() {
        let isScheduled = front.withLock { front in
            defer { front.isFlushScheduled = true }
            return front.isFlushScheduled
        }
        if !isScheduled { ledger.scheduleFlush() }
    }

    /// The value of a row, of which memory is offered a copy.
    func taken(
        _ found: FoundRow, _ key: Key, _ hash: UInt64, _ stored: StoredKey, _ terms: CacheTerms<Value>,
        since sequence: UInt64, _ watch: CommitWatch, round: UInt32
    ) -> Finding<Value> {
        let finding = decoded(found, stored, terms)
        guard case .value(let value) = finding else { return finding }
        ledger.count { $0.diskHits += 1 }
        let facts = found.facts
        let cost = found.row.memoryCost
        let bytes = bytes(of: key, stored, payloadSize: found.row.payloadSize)
        let displacement = front.withLock { front -> Displacement<Key, Value>? in
            guard front.holdsCopies, front.memory.admits(cost: cost, bytes: bytes), front.watch === watch else {
                return nil
            }
            let entry = FrontEntry(
                value: value, writtenAt: facts.writtenAt, accessedAt: found.moment,
                storedAccess: found.row.facts.accessedAt, revision: facts.revision,
                used: front.nextUse(after: facts.revision), age: facts.age, round: round)
            return front.offer(key, hash: hash, entry, cost: cost, bytes: bytes, since: sequence)
        }
        if displacement != nil { noteEnd(writtenAt: facts.writtenAt, accessedAt: found.moment, age: facts.age) }
        if displacement == nil { ledger.noteUse(stored, found.row.facts, at: found.moment) }
        return finding
    }

    /// The value in a row, or why there is none; no lock is held.
    func decoded(_ found: FoundRow, _ stored: StoredKey, _ terms: CacheTerms<Value>) -> Finding<Value> {
        do throws(CacheError) {
            return .value(try decode(found.row, stored, terms))
        } catch {
            ledger.count { $0.misses += 1 }
            return failed(
                stored, revision: found.facts.revision, isInFile: found.row.facts.file != nil, error, terms)
        }
    }

    /// The value in a row.
    @inlinable
    func decode(_ row: EntryRow, _ stored: StoredKey, _ terms: CacheTerms<Value>) throws(CacheError) -> Value {
        guard let payload = row.payload, row.isSound else {
            throw damaged(stored)
        }
        return try terms.codec.decode(payload, cache: name, key: stored.description)
    }

    @usableFromInline
    func damaged(_ stored: StoredKey) -> CacheError {
        CacheError(
            .undecodable,
            "The row of key \(stored) in cache \"\(name)\" is damaged. It counts as absent; write the key anew.")
    }

    /// Remembers a row that cannot be read, and reports it once.
    ///
    /// That a file is damaged or gone is told as an event, and is no failure of the call: files are for anybody to
    /// delete.
    func failed(
        _ stored: StoredKey, revision: Int64, isInFile: Bool = false, _ error: CacheError, _ terms: CacheTerms<Value>
    ) -> Finding<Value> {
        let isDamaged = error.underlying == nil
        do throws(CacheError) {
            // Where the index is damaged, it is not the row, and the store has just been rebuilt from its rows.
            if isDamaged, try ledger.wasIndexWrong(for: stored) { return .nothing }
        } catch {
            return .failure(error)
        }
        let isDropped = terms.undecodable == .drop
        guard ledger.noteUnreadable(stored, revision: revision, isDropped: isDropped) else { return .nothing }
        forgetCopy(of: stored)
        report(isDamaged ? .corruptEntry : .undecodable, key: stored, error.message, error: error)
        return isDamaged && isInFile ? .nothing : .failure(error)
    }

    /// Lets go of the copy of an entry that counts as absent from now on, which memory may have since it was written.
    private func forgetCopy(of stored: StoredKey) {
        guard mayHoldCopies else { return }
        do throws(CacheError) {
            let key = try keyCodec.key(stored, cache: name)
            let hash = seed.hash(key)
            let displaced = front.withLock { $0.remove(key, hash: hash) }
            _ = consume displaced
        } catch {
            // Which one it is, a key that does not decode cannot tell.
            var discards = Discards()
            front.withLock { $0.releaseAll(&discards) }
        }
    }

    /// When memory saw a key used last; a moment that is ahead of `now` is taken for now.
    @usableFromInline
    func accessed(_ key: Key, now: Int64 = .max) -> Int64? {
        takeOverEvicted()
        let hash = seed.hash(key)
        return front.withLock { $0.accessed(key, hash: hash, now: now) }
    }

    /// Notes that an entry was read from disk beside the copy in memory.
    func noteUse(of key: Key, _ stored: StoredKey, _ facts: EntryFacts, at now: Int64) {
        let hash = seed.hash(key)
        prepareToNoteUses()
        let isNoted = front.withLock { front in
            guard front.holdsCopies else { return false }
            return front.use(key, hash: hash, at: now, used: front.nextUse(after: facts.revision))
        }
        if !isNoted { ledger.noteUse(stored, facts, at: now) }
    }

    /// Reads many keys as of one moment.
    func findMany(_ keys: [Key], _ terms: CacheTerms<Value>) throws(CacheError) -> [Key: Value] {
        var wanted: [(key: Key, hash: UInt64, stored: StoredKey)] = []
        for key in keys { wanted.append((key, seed.hash(key), try keyCodec.stored(key, cache: name))) }
        prepareToNoteUses()
        takeOverEvicted()
        // Memory and disk are two moments: who needs both asks the disk for all.
        for isFromDisk in [false, true] {
            let now = terms.now()
            let watch = front.withLock { $0.watch }
            let round = watch.round()
            var found: [Key: Value] = [:]
            var missing: [Int] = []
            var over: [(StoredKey, Int64)] = []
            var hits = 0
            let sequence = front.withLock { front in
                for (index, item) in wanted.enumerated() {
                    guard !isFromDisk else {
                        missing.append(index)
                        continue
                    }
                    switch front.look(item.key, hash: item.hash, rule: terms.rule, now: now, round: round) {
                    case .hit(let value):
                        found[item.key] = value
                        hits += 1
                    case .over(let revision): over.append((item.stored, revision))
                    case .unsure, .absent, .future: missing.append(index)
                    }
                }
                // They are looked up again, and counted then.
                if !missing.isEmpty, !(hits == 0 && over.isEmpty) { front.memoryHits -= hits }
                return front.offers.sequence
            }
            if !isFromDisk, !missing.isEmpty, !(hits == 0 && over.isEmpty) { continue }
            let asked = missing.map { wanted[$0].stored }
            let rows = asked.isEmpty ? [] : try ledger.rows(asked, round, terms.age)
            for (stored, revision) in over { ledger.noteMiss(stored, expired: revision) }
            for (index, row) in zip(missing, rows) {
                let item = wanted[index]
                let accessedAt = front.withLock { $0.accessed(item.key, hash: item.hash) }
                guard let judged = ledger.judged(item.stored, row, terms.age, accessedAt: accessedAt),
                    let row = try ledger.filled(item.stored, judged, terms.age)
                else { continue }
                let finding = taken(row, item.key, item.hash, item.stored, terms, since: sequence, watch, round: round)
                if case .value(let value) = finding { found[item.key] = value }
            }
            return found
        }
        return [:]
    }
}

extension EntryRow {
    /// The size of the payload.
    var payloadSize: Int { payload?.count ?? Int(clamping: facts.size) - (extended?.count ?? 0) }

    /// What a copy in memory counts, in the bounds of costs.
    fileprivate var memoryCost: Int {
        cost.map { MemoryCacheState<Int, Int>.clamped(Int(clamping: $0)) } ?? payloadSize
    }
}
