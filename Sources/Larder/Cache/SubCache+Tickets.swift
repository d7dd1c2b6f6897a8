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
        ledger.putTicket(write.stored, write.content, scope: scope) { [flights] in
            flights.noteWrite(write.key)
        } apply: { [self] revision, round in
            let displaced = front.withLock { $0.put(write, revision: revision, round: round) }
            flights.noteWrite(write.key)
            changes.noteUpdated(write.key)
            guard let kept else { return displaced }
            return kept.keep(displaced)
        }
    }

    /// Writes many entries in one step.
    func setTicket(_ writes: [PreparedWrite<Key, Value>]) -> WriteTicket<(PutRows, WritePlace)> {
        putTicket(writes) { [flights] index in
            flights.noteWrite(writes[index].key)
            return true
        } visible: { [flights] in
            for write in writes { flights.noteWrite(write.key) }
        }
    }

    /// Writes what a flight has made, as far as its permit goes: the flight's own writing is no news to it.
    func generatedTicket(
        _ writes: [PreparedWrite<Key, Value>], _ permit: FlightPermit<Key>
    ) -> WriteTicket<(PutRows, WritePlace)> {
        putTicket(writes) {
            permit.mayStore(writes[$0].key)
        } visible: {
        }
    }

    private func putTicket(
        _ writes: [PreparedWrite<Key, Value>], admits: @escaping @Sendable (Int) -> Bool,
        visible: @escaping @Sendable () -> Void
    ) -> WriteTicket<(PutRows, WritePlace)> {
        let pause = OfferPause(self)
        return ledger.putTicket(writes.map { ($0.stored, $0.content) }) { index in
            pause.begin()
            return admits(index)
        } apply: { [self] put, round in
            let displaced = front.withLock { front in
                put.indices.compactMap { index in
                    front.put(writes[index], revision: put.revision + Int64(index), round: round)
                }
            }
            visible()
            pause.end()
            if changes.isObserved { changes.noteUpdated(put.indices.map { writes[$0].key }) }
            return displaced
        }
    }

    func removeTicket(
        _ keys: [(key: Key, stored: StoredKey)], scope: WriteScope? = nil, kept: KeptDisplacement? = nil
    ) -> WriteTicket<([Int], WritePlace)> {
        let hashes = keys.map { seed.hash($0.key) }
        return ledger.removeTicket(keys.map(\.stored), scope: scope) { [flights] in
            for key in keys { flights.noteWrite(key.key) }
        } apply: { [self] removed in
            let displaced = front.withLock { front in zip(keys, hashes).map { front.remove($0.key, hash: $1) } }
            for key in keys { flights.noteWrite(key.key) }
            if changes.isObserved { changes.noteRemoved(removed.map { keys[$0].key }) }
            guard let kept else { return displaced }
            return kept.keep(displaced)
        }
    }

    /// Removes a key, and gives back the row that it had.
    func takeTicket(
        _ key: Key, _ stored: StoredKey, _ terms: CacheTerms<Value>
    ) -> WriteTicket<(TakenRow, WritePlace)> {
        let hash = seed.hash(key)
        return ledger.takeTicket(stored, terms.age, accessedAt: accessed(key, now: terms.now())) { [flights] in
            flights.noteWrite(key)
        } apply: { [self] wasThere in
            let displaced = front.withLock { $0.remove(key, hash: hash) }
            flights.noteWrite(key)
            if wasThere { changes.noteRemoved(key) }
            return displaced
        }
    }

    /// Puts other extended data beside an entry.
    func extendedTicket(
        _ key: Key, _ stored: StoredKey, _ data: Data?, _ terms: CacheTerms<Value>
    ) -> WriteTicket<(Bool, WritePlace)> {
        let hash = seed.hash(key)
        return ledger.extendedTicket(stored, data, terms.age, accessedAt: accessed(key, now: terms.now())) {
            [flights] in
            flights.noteWrite(key)
        } apply: { [self] in
            // The copy in memory has the old revision; the next read brings it in again.
            let displaced = front.withLock { front in
                front.noteChange(hash: hash)
                return front.drop(key, hash: hash)
            }
            flights.noteWrite(key)
            return displaced
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
        guard holdsCopies else { return nil }
        let entry = FrontEntry(
            value: write.value, writtenAt: write.content.row.writtenAt, accessedAt: write.content.row.writtenAt,
            revision: revision, used: revision, age: write.content.row.age, round: round)
        return keep(write.key, hash: write.hash, entry, cost: write.cost)
    }
}
