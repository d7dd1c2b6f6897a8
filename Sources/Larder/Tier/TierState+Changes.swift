internal import LarderSQLite
public import LarderStore

/// Changes, in the order of commits.
extension TierState {
    /// Refuses what reads that began earlier offer for a key.
    @inlinable
    mutating func noteChange(_ hash: UInt64) { stamps[Int(truncatingIfNeeded: hash & 255)] &+= 1 }

    /// Refuses what reads that began earlier offer for any key.
    mutating func noteChangeOfAll() { for index in stamps.indices { stamps[index] &+= 1 } }

    @inlinable
    mutating func wrote(
        _ copy: NewCopy<Key, Value>, _ row: RowStamp, at moment: Int64, _ epoch: UInt32,
        _ deferred: inout Deferred
    ) {
        noteChange(copy.hash)
        setNow(moment)
        keep(copy, row, epoch, Self.writtenOnly, &deferred)
    }

    /// Notes that a row has other attributes.
    mutating func changed(_ key: Key, hash: UInt64, _ row: RowStamp, _ epoch: UInt32) -> Node? {
        noteChange(hash)
        let index = memory.table.locate(key, hash: hash)
        if index == 0 { return nil }
        let isSame = memory.rests[Int(index)].id == row.id
        memory.rests[Int(index)].revision = row.revision
        // A copy of an earlier epoch may be that of another row.
        guard memory.table.value(at: index).epoch == epoch else {
            if isSame { keepAccess(at: index) }
            return remove(key, hash: hash)
        }
        setAge(row, at: index)
        return nil
    }

    /// Removes the copy of a key.
    ///
    /// - Parameter revision: The revision of the removed row; nil if the copy is removed in any case.
    mutating func remove(_ key: Key, hash: UInt64, revision: Int64? = nil) -> Node? {
        noteChange(hash)
        let found = memory.table.locate(key, hash: hash)
        if found == 0 { return nil }
        if let revision, memory.rests[Int(found)].revision != revision { return nil }
        return memory.remove(found)
    }

    /// Removes all copies, to be released outside the lock.
    mutating func removeAll() -> EmptiedTable<Key, CachedValue<Value>> {
        noteChangeOfAll()
        return EmptiedTable(memory.removeAll())
    }

    @inlinable
    mutating func keep(
        _ copy: NewCopy<Key, Value>, _ row: RowStamp, _ epoch: UInt32, _ time: UInt32,
        _ deferred: inout Deferred
    ) {
        let value = CachedValue(copy.value, end: row.end, epoch: epoch, slides: row.slidingAge != nil)
        var (discards, evicted, accesses): ([Node], Int, [Access]) = ([], 0, [])
        let (origin, accessGrain) = (origin, accessGrain)
        let replaced = memory.setValue(
            value, forKey: copy.key, hash: copy.hash, cost: copy.cost, bytes: copy.bytes, end: nil, into: &discards
        ) { memory, index in
            if Int(index) >= memory.rests.count {
                Memory.extend(&memory.rests, with: EntryRest(), to: index, within: memory.table.nodeCapacity)
            }
            memory.rests[Int(index)] = EntryRest(id: row.id, revision: row.revision)
            memory.table.log.setTime(time, of: index)
            memory.setAge(row.age, at: index)
        } willEvict: { memory, index in
            evicted += 1
            if let access = memory.access(at: index, since: origin, accessGrain) { accesses.append(access) }
        }
        counts.memoryEvictions += evicted
        evictedAccesses += accesses
        if !replaced.isEmpty { deferred.add(replaced) }
        if !discards.isEmpty { deferred.add(discards) }
    }

    /// Takes over when a copy expires.
    @inlinable
    mutating func setAge(_ row: RowStamp, at index: UInt32) {
        memory.table.withValue(at: index) { $0.setEnd(row.end, slides: row.slidingAge != nil) }
        memory.setAge(row.age, at: index)
    }
}

extension BoundedTable {
    /// Takes over the milliseconds of the age of an entry; most entries of a cache have the same.
    @inlinable
    mutating func setAge(_ age: Int64, at index: UInt32) {
        if usualAge == 0 { usualAge = age }
        if age > 0, age != usualAge, Int(index) >= ages.count {
            Self.extend(&ages, with: usualAge, to: index, within: table.nodeCapacity)
        }
        if Int(index) < ages.count { ages[Int(index)] = age }
    }
}

/// The entries that a table had, until they are released outside the lock.
final class EmptiedTable<Key: Hashable & Sendable, Entry: Sendable>: Sendable {
    private let table: LRUTable<Key, Entry>

    init(_ table: consuming LRUTable<Key, Entry>) { self.table = table }

    /// Calls a closure for each entry, least recently used first.
    func forEach(_ body: (Key, Entry) -> Void) {
        for index in table.order { body(table.key(at: index), table.value(at: index)) }
    }
}
