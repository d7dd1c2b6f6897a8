public import Foundation
public import LarderLocks
public import LarderStore

/// The read path: memory, else the disk.
///
/// It is inlinable, since generic code that is not specialized for the types of a cache takes a tenth of a read.
extension Cache {
    /// Returns the value of a key from memory by a full look, or from the disk.
    @inlinable
    func find(_ key: Key) throws(CacheError) -> Value? {
        let stored = try stored(key)
        let hash = copies.seed.hash(key)
        let now = rows.now()
        let (look, ticket) = lookUp(key, hash, now)
        switch look {
        case .hit, .slid: return served(look, at: now)
        case .expired: return missed()
        case .unsure(let value, let revision):
            // Another store has committed, or the caches were cleared: the copy is good if the row is the same.
            guard let header = try rows.currentHeader(stored) else {
                copies.removed(key, hash: hash, revision: revision)
                return missed()
            }
            guard header.revision == revision else { break }
            if header.end < now { return missed() }
            noteAccess(to: key, hash, header, at: now, confirming: ticket)
            copies.count { $0.memoryHits += 1 }
            return value
        case .absent: break
        }
        guard let row = try rows.currentRow(stored), row.header.end >= now else { return missed() }
        let value: Value
        do throws(CacheError) {
            value = try decode(row)
        } catch {
            let _: Value? = missed()
            throw error
        }
        take(value, of: row, key, hash, at: now, ticket)
        return value
    }

    /// Returns the value of a key if memory may serve it.
    @inlinable
    func valueInMemory(_ key: Key) -> Value? {
        if let value = hit(key) { return value }
        let now = rows.now()
        return served(lookUp(key, copies.seed.hash(key), now).0, at: now)
    }

    @inlinable
    func served(_ look: TierState<Key, Value>.LookUp, at now: Int64) -> Value? {
        switch look {
        case .hit(let value): return value
        case .slid(let value, let row):
            rows.noteAccess(to: row, at: now)
            return value
        case .expired, .unsure, .absent: return nil
        }
    }

    /// Looks a key up in memory.
    ///
    /// The epoch is that of the moment before, so what a later read finds is at least as new.
    @inlinable
    func lookUp(_ key: Key, _ hash: UInt64, _ now: Int64) -> (TierState<Key, Value>.LookUp, ReadTicket) {
        copies.state.withLock { $0.lookUp(key, hash: hash, now: now) }
    }

    /// Offers a value that was read to memory, and notes the access.
    @inlinable
    func take(
        _ value: Value, of row: StoredRow, _ key: Key, _ hash: UInt64, at now: Int64, _ ticket: ReadTicket
    ) {
        var header = row.header
        header.note(accessAt: now)
        let copy = copy(of: value, key, hash, row.header.key, payloadSize: row.payload.count, cost: header.meta.cost)
        let isKept = copies.offer(copy, header.stamp, at: now, ticket)
        if !isKept { noteAccess(to: key, hash, header, at: now) }
        if isKept, header.slidingAge != nil { rows.noteAccess(to: header.stamp, at: now) }
    }

    /// Notes an access to an entry whose copy in memory, if there is one, was not read, and returns its header after it.
    @discardableResult
    @inlinable
    func noteAccess(
        to key: Key, _ hash: UInt64, _ header: EntryHeader, at now: Int64, confirming ticket: ReadTicket? = nil
    ) -> EntryHeader {
        var header = header
        header.note(accessAt: now)
        let row = header.stamp
        let isNoted = copies.state.withLock {
            $0.noteAccess(to: key, hash: hash, row, at: now, confirming: ticket)
        }
        if !isNoted || header.slidingAge != nil { rows.noteAccess(to: row, at: now) }
        return header
    }

    /// Counts a miss.
    @inlinable
    func missed<R>() -> R? {
        copies.count { $0.misses += 1 }
        return nil
    }

    /// Returns the value in a row.
    ///
    /// A value that does not decode is reported, and its row deleted in the background if the options say so.
    @inlinable
    func decode(_ row: StoredRow) throws(CacheError) -> Value {
        do throws(CacheError) {
            return try codec.decode(row.payload, cache: name, key: row.header.key.name)
        } catch {
            noteUndecodable(row.header, error)
            throw error
        }
    }

    @usableFromInline
    func noteUndecodable(_ header: EntryHeader, _ error: CacheError) {
        if undecodable == .drop { rows.removeLater(header) }
        copies.count { $0.failures += 1 }
        manager.reporter.report(
            CacheEvent(.undecodable, cacheName: name, key: header.key.name, message: error.message), .warning,
            error: error)
    }

    /// The copy that memory keeps of a value.
    @inlinable
    func copy(
        of value: Value, _ key: Key, _ hash: UInt64, _ stored: StoredKey, payloadSize: Int, cost: Int64?
    ) -> NewCopy<Key, Value> {
        NewCopy(
            key: key, hash: hash, value: value,
            cost: TierState<Key, Value>.Memory.clamped(cost.map { Int(clamping: $0) } ?? payloadSize),
            bytes: EntryBytes.ofKey(key, encodedCount: stored.encodedCount)
                + EntryBytes.ofValue(Value.self, encodedCount: payloadSize))
    }

    // MARK: Many keys

    /// Returns the values of keys at one moment: all from memory, or all from the disk.
    func find(_ keys: [Key]) throws(CacheError) -> [Key: Value] {
        var wanted: [StoredKey: (key: Key, hash: UInt64)] = [:]
        var order: [StoredKey] = []
        for key in keys {
            let stored = try stored(key)
            if wanted.updateValue((key, copies.seed.hash(key)), forKey: stored) == nil { order.append(stored) }
        }
        let now = rows.store.time.now()
        let items = order.compactMap { wanted[$0] }
        let (found, tickets) = copies.state.withLock { state in
            (state.values(items, now: now), items.map { state.ticket($0.hash) })
        }
        if let found, !found.isEmpty { return Dictionary(zip(items.lazy.map { $0.key }, found)) { first, _ in first } }
        let offers = Dictionary(uniqueKeysWithValues: zip(order, tickets))
        let rows = try throwing("read values") { () throws(StoreError) in try self.rows.rows(order) }
        var values: [Key: Value] = [:]
        for row in rows where row.header.end >= now {
            guard let (key, hash) = wanted[row.header.key], let ticket = offers[row.header.key] else { continue }
            let value: Value
            // The other values are as good.
            do throws(CacheError) { value = try decode(row) } catch { continue }
            take(value, of: row, key, hash, at: now, ticket)
            values[key] = value
        }
        let missing = order.count - values.count
        copies.count { $0.misses += missing }
        return values
    }
}

extension CacheRows {
    /// Runs a call of the store, and gives its failure the names of the cache and the key.
    func throwing<R>(
        _ action: String, _ key: StoredKey? = nil, _ body: () throws(StoreError) -> R
    ) throws(CacheError) -> R {
        do throws(StoreError) {
            return try body()
        } catch {
            if error.code == .superseded { noteSuperseded() }
            throw CacheError(error, action, cache: declaration.name, key: key)
        }
    }

    /// Returns the row of a key; nil if there is none.
    @usableFromInline
    func currentRow(_ key: StoredKey) throws(CacheError) -> StoredRow? {
        try throwing("read the value", key) { () throws(StoreError) in try row(key) }
    }

    /// Returns the header of a key's row; nil if there is none.
    @usableFromInline
    func currentHeader(_ key: StoredKey) throws(CacheError) -> EntryHeader? {
        try throwing("read the value", key) { () throws(StoreError) in try header(key) }
    }
}
