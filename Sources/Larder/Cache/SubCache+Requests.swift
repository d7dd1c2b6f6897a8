internal import Foundation

#if LARDER_TSAN
public import LarderTSan
#else
public import Synchronization
#endif

/// The writes of a cache, each with what it changes in memory.
extension SubCache {
    /// Returns a request that writes one entry.
    ///
    /// - Parameter scope: Other than the key, where that is held by the caller.
    @inlinable
    func setRequest(_ write: PreparedWrite<Key, Value>, scope: WriteScope? = nil) -> WriteRequest {
        ledger.putRequest(write.stored, write.content, scope: scope, setEffect(write))
    }

    @inlinable
    func setEffect(_ write: PreparedWrite<Key, Value>) -> MemoryEffect {
        MemoryEffect { [self] discards in
            discards.add(loads.noteWrite(write.key))
            return front.withLock { $0.lastUse }
        } apply: { [self] outcome, discards in
            discards.add(front.withLock { $0.put(write, revision: outcome.revision, round: outcome.round) })
            noteEnd(of: write)
            discards.add(loads.noteWrite(write.key))
            changes.noteUpdated(write.key, &discards)
        }
    }

    /// Sees to it that what was written leaves memory when it has expired.
    @inlinable @inline(__always)
    func noteEnd(of write: PreparedWrite<Key, Value>) {
        let row = write.content.row
        noteEnd(writtenAt: row.writtenAt, accessedAt: row.writtenAt, age: row.age)
    }

    /// Returns a request that writes many entries in one step.
    ///
    /// - Parameter permit: What lets a load store its values; nil where values are set by a caller.
    func setRequest(_ writes: [PreparedWrite<Key, Value>], _ permit: LoadPermit<Key>? = nil) -> WriteRequest {
        var admits: (@Sendable (Int) -> Bool)?
        if let permit { admits = { permit.mayStore(writes[$0].key) } }
        // A load is not overtaken by its own write.
        let keys = permit == nil ? writes.map(\.key) : []
        let effect = MemoryEffect(
            begin: { [self] discards in begin(keys, &discards) },
            apply: { [self] outcome, discards in
                let displaced = front.withLock { front in
                    outcome.indices.compactMap { index in
                        front.put(writes[index], revision: outcome.revision + Int64(index), round: outcome.round)
                    }
                }
                discards.add(displaced)
                for index in outcome.indices { noteEnd(of: writes[index]) }
                for key in keys { discards.add(loads.noteWrite(key)) }
                changes.noteUpdated(outcome.indices.map { writes[$0].key }, &discards)
            }, mark: marking(writes.map(\.hash)))
        return WriteRequest(.put(writes.map { RowContent($0.stored, $0.content) }, admits: admits), to: ledger, effect)
    }

    /// Returns a request that removes keys in one step.
    ///
    /// - Parameter scope: Other than the keys, where these are held by the caller.
    func removeRequest(_ keys: [(key: Key, stored: StoredKey)], scope: WriteScope? = nil) -> WriteRequest {
        WriteRequest(.remove(keys.map(\.stored)), to: ledger, scope: scope, removeEffect(keys.map(\.key)))
    }

    /// Returns a request that removes a key, and keeps the row that it had.
    func takeRequest(_ key: Key, _ stored: StoredKey, _ terms: CacheTerms<Value>) -> WriteRequest {
        WriteRequest(.take(target(key, stored, terms)), to: ledger, removeEffect([key]))
    }

    private func removeEffect(_ keys: [Key]) -> MemoryEffect {
        let hashes = keys.map { seed.hash($0) }
        return MemoryEffect { [self] discards in
            begin(keys, &discards)
        } apply: { [self] outcome, discards in
            discards.add(front.withLock { front in zip(keys, hashes).map { front.remove($0, hash: $1) } })
            for key in keys { discards.add(loads.noteWrite(key)) }
            changes.noteRemoved(outcome.indices.map { keys[$0] }, &discards)
        }
    }

    /// Returns the change in memory of a removal that overtakes no load.
    func removal(of key: Key) -> MemoryEffect {
        let hash = seed.hash(key)
        return MemoryEffect { [self] _ in
            front.withLock { $0.lastUse }
        } apply: { [self] outcome, discards in
            guard outcome.isChange else { return }
            discards.add(front.withLock { $0.remove(key, hash: hash) })
            changes.noteRemoved([key], &discards)
        }
    }

    /// Returns a request that changes attributes of an entry.
    ///
    /// - Parameter overtakesLoads: Whether a value that is being loaded for the key is not stored over this.
    func changeRequest(
        _ key: Key, _ stored: StoredKey, _ terms: CacheTerms<Value>, isWrite: Bool = false,
        overtakesLoads: Bool = false, _ change: @escaping @Sendable (inout SealedColumns) -> Void
    ) -> WriteRequest {
        let hash = seed.hash(key)
        let keys = overtakesLoads ? [key] : []
        let effect = MemoryEffect { [self] discards in
            begin(keys, &discards)
        } apply: { [self] outcome, discards in
            guard outcome.isChange else { return }
            // The copy in memory has the old revision; the next read brings it in again.
            let displaced = front.withLock { front in
                front.offers.noteChange(hash)
                return front.drop(key, hash: hash)
            }
            discards.add(displaced)
            for key in keys { discards.add(loads.noteWrite(key)) }
        }
        let change = EntryChange(isWrite: isWrite, change)
        return WriteRequest(.change(target(key, stored, terms), change), to: ledger, effect)
    }

    /// Returns a request of a transaction: until all of it is in memory, the disk answers for its keys.
    func staged(_ operation: WriteOperation, _ key: Key, _ effect: MemoryEffect) -> WriteRequest {
        let hash = seed.hash(key)
        let marking = marking([hash])
        let staged = MemoryEffect(begin: effect.begin, apply: effect.apply) { [self] isOn, discards in
            marking(isOn, &discards)
            if isOn { discards.add(front.withLock { $0.drop(key, hash: hash) }) }
        }
        return WriteRequest(operation, to: ledger, scope: .unheld, staged)
    }

    func stagedSet(_ write: PreparedWrite<Key, Value>) -> WriteRequest {
        staged(.put([RowContent(write.stored, write.content)], admits: nil), write.key, setEffect(write))
    }

    func stagedRemoval(_ key: Key, _ stored: StoredKey) -> WriteRequest {
        staged(.remove([stored]), key, removeEffect([key]))
    }

    /// Notes that keys are being written: loads that began earlier do not store their values.
    private func begin(_ keys: [Key], _ discards: inout Discards) -> Int64 {
        for key in keys { discards.add(loads.noteWrite(key)) }
        return front.withLock { $0.lastUse }
    }

    /// What keeps the results of reads out of memory while keys are being committed together.
    private func marking(_ hashes: [UInt64]) -> @Sendable (Bool, inout Discards) -> Void {
        let hashes = Set(hashes.map { UInt8(truncatingIfNeeded: $0) })
        return { [self] isOn, _ in
            front.withLock { front in
                if isOn { front.offers.beginCommit(hashes) } else { front.offers.endCommit(hashes) }
            }
        }
    }

    private func target(_ key: Key, _ stored: StoredKey, _ terms: CacheTerms<Value>) -> EntryTarget {
        EntryTarget(stored, terms.age, accessedAt: accessed(key, now: terms.now()))
    }

    // MARK: - Removals that no call names

    package func removal(of victims: [RowVictim], _ cause: RemovalCause, isLate: Bool) -> MemoryEffect {
        var copies: [(key: Key, hash: UInt64)?] = []
        for victim in victims {
            do throws(CacheError) {
                let key = try keyCodec.key(victim.key, cache: name)
                copies.append((key, seed.hash(key)))
            } catch {
                // Memory may have a copy though: a set only encodes its key.
                copies.append(nil)
            }
        }
        // What an age, a limit or a predicate takes away may come back as the result of a load.
        let overtaken = zip(copies, victims).compactMap { cause == .call && !$1.isExpired ? $0?.key : nil }
        return MemoryEffect { [self] discards in
            begin(overtaken, &discards)
        } apply: { [self, copies] outcome, discards in
            let removed = outcome.indices.compactMap { copies[$0] }
            // Which copy is that of a row whose key does not decode, memory cannot tell.
            let isOneUnknown = removed.count < outcome.indices.count
            front.withLock { front in
                if isOneUnknown { return front.releaseAll(&discards) }
                for item in removed { discards.add(front.remove(item.key, hash: item.hash)) }
            }
            if outcome.isChange { for key in overtaken { discards.add(loads.noteWrite(key)) } }
            // A late one comes after sets of these keys, perhaps.
            if isOneUnknown || isLate {
                changes.noteReset(&discards)
            } else {
                changes.noteRemoved(removed.map(\.key), &discards)
            }
        }
    }
}

extension FrontState {
    /// Takes in what was written; nil where nothing was put out of its place.
    @inlinable
    mutating func put(
        _ write: PreparedWrite<Key, Value>, revision: Int64, round: UInt32
    ) -> Displacement<Key, Value>? {
        offers.noteChange(write.hash)
        lastUse = max(lastUse, revision)
        // What memory still has when its limit has become nothing must go, if it is this key's.
        guard holdsCopies || memory.table.count > 0 else { return nil }
        let entry = FrontEntry(
            value: write.value, writtenAt: write.content.row.writtenAt, accessedAt: write.content.row.writtenAt,
            storedAccess: write.content.row.writtenAt, revision: revision, used: lastUse, age: write.content.row.age,
            round: round)
        return keep(write.key, hash: write.hash, entry, cost: write.cost, bytes: write.bytes)
    }
}
