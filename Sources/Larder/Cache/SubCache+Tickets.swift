internal import Foundation

#if LARDER_TSAN
public import LarderTSan
#else
public import Synchronization
#endif

/// The writes of a sub-cache, each with what it changes in memory.
extension SubCache {
    /// - Parameters:
    ///   - scope: Other than the key, where that is held by the caller.
    ///   - kept: Takes what is displaced, where the caller still holds something when the write is over.
    @inlinable
    func setTicket(
        _ write: PreparedWrite<Key, Value>, scope: WriteScope? = nil, kept: KeptDisplacement? = nil
    ) -> WriteTicket<(Int64, WritePlace)> {
        ledger.putTicket(write.stored, write.content, scope: scope) { [flights] place in
            place.keep(flights.noteWrite(write.key))
        } apply: { [self] revision, round in
            let displaced = front.withLock { $0.put(write, revision: revision, round: round) }
            noteEnd(of: write)
            let told = ReleasedLater.both(flights.noteWrite(write.key), changes.noteUpdated(write.key))
            let all = ReleasedLater.both(displaced, told)
            guard let kept else { return all }
            return kept.keep(all)
        }
    }

    /// Sees to it that what was written leaves memory when it has expired.
    @inlinable @inline(__always)
    func noteEnd(of write: PreparedWrite<Key, Value>) {
        let row = write.content.row
        noteEnd(writtenAt: row.writtenAt, accessedAt: row.writtenAt, age: row.age)
    }

    /// Writes many entries in one step.
    func setTicket(_ writes: [PreparedWrite<Key, Value>]) -> WriteTicket<(PutRows, WritePlace)> {
        putTicket(writes) { [flights] index, place in
            place.keep(flights.noteWrite(writes[index].key))
            return true
        } visible: { [flights] in
            ReleasedLater.all(writes.compactMap { flights.noteWrite($0.key) })
        }
    }

    /// Writes what a flight has made, as far as its permit goes: the flight's own writing is no news to it.
    func generatedTicket(
        _ writes: [PreparedWrite<Key, Value>], _ permit: FlightPermit<Key>
    ) -> WriteTicket<(PutRows, WritePlace)> {
        putTicket(writes) { index, _ in
            permit.mayStore(writes[index].key)
        } visible: {
            nil
        }
    }

    private func putTicket(
        _ writes: [PreparedWrite<Key, Value>], admits: @escaping @Sendable (Int, inout WritePlace) -> Bool,
        visible: @escaping @Sendable () -> (any Sendable)?
    ) -> WriteTicket<(PutRows, WritePlace)> {
        let pause = OfferPause(self)
        return ledger.putTicket(writes.map { ($0.stored, $0.content) }) { index, place in
            pause.begin()
            return admits(index, &place)
        } apply: { [self] put, round in
            let displaced = front.withLock { front in
                put.indices.compactMap { index in
                    front.put(writes[index], revision: put.revision + Int64(index), round: round)
                }
            }
            for index in put.indices { noteEnd(of: writes[index]) }
            let flown = visible()
            pause.end()
            let told = changes.isObserved ? changes.noteUpdated(put.indices.map { writes[$0].key }) : nil
            return ReleasedLater.both(displaced, ReleasedLater.both(flown, told))
        }
    }

    func removeTicket(
        _ keys: [(key: Key, stored: StoredKey)], scope: WriteScope? = nil, kept: KeptDisplacement? = nil
    ) -> WriteTicket<([Int], WritePlace)> {
        let hashes = keys.map { seed.hash($0.key) }
        return ledger.removeTicket(keys.map(\.stored), scope: scope) { [flights] place in
            for key in keys { place.keep(flights.noteWrite(key.key)) }
        } apply: { [self] removed in
            let displaced = front.withLock { front in zip(keys, hashes).map { front.remove($0.key, hash: $1) } }
            let flown = ReleasedLater.all(keys.compactMap { flights.noteWrite($0.key) })
            let told = changes.isObserved ? changes.noteRemoved(removed.map { keys[$0].key }) : nil
            let all = ReleasedLater.both(displaced, ReleasedLater.both(flown, told))
            guard let kept else { return all }
            return kept.keep(all)
        }
    }

    /// Removes a key, and gives back the row that it had.
    func takeTicket(
        _ key: Key, _ stored: StoredKey, _ terms: CacheTerms<Value>
    ) -> WriteTicket<(TakenRow, WritePlace)> {
        let hash = seed.hash(key)
        return ledger.takeTicket(stored, terms.age, accessedAt: accessed(key, now: terms.now())) {
            [flights] place in
            place.keep(flights.noteWrite(key))
        } apply: { [self] wasThere in
            let displaced = front.withLock { $0.remove(key, hash: hash) }
            let flown = flights.noteWrite(key)
            let told = wasThere ? changes.noteRemoved(key) : nil
            return ReleasedLater.both(displaced, ReleasedLater.both(flown, told))
        }
    }

    /// Stores other extended data with an entry.
    func extendedTicket(
        _ key: Key, _ stored: StoredKey, _ data: Data?, _ terms: CacheTerms<Value>
    ) -> WriteTicket<(Int64?, WritePlace)> {
        changeTicket(key, stored, terms, isWrite: false, overtakesLoads: true) { $0.extended = data }
    }

    /// Changes attributes of an entry.
    ///
    /// - Parameters:
    ///   - isWrite: Whether the entry counts as written, for the order of use.
    ///   - overtakesLoads: Whether a value that is being loaded for the key is not stored over this.
    func changeTicket(
        _ key: Key, _ stored: StoredKey, _ terms: CacheTerms<Value>, isWrite: Bool, overtakesLoads: Bool = false,
        _ change: @escaping @Sendable (inout SealedColumns) -> Void
    ) -> WriteTicket<(Int64?, WritePlace)> {
        let hash = seed.hash(key)
        let accessedAt = accessed(key, now: terms.now())
        return ledger.changeTicket(stored, terms.age, accessedAt: accessedAt, isWrite: isWrite, change) {
            [flights] place in
            if overtakesLoads { place.keep(flights.noteWrite(key)) }
        } apply: { [self] in
            // The copy in memory has the old revision; the next read brings it in again.
            let displaced = front.withLock { front in
                front.noteChange(hash: hash)
                return front.drop(key, hash: hash)
            }
            return ReleasedLater.both(displaced, overtakesLoads ? flights.noteWrite(key) : nil)
        }
    }
}

extension FrontState {
    /// Takes in what was written; nil where nothing was put out of its place.
    @inlinable
    mutating func put(
        _ write: PreparedWrite<Key, Value>, revision: Int64, round: UInt32
    ) -> Displacement<Key, Value>? {
        noteChange(hash: write.hash)
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
