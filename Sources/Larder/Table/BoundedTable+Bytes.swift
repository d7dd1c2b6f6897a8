/// The bytes that the entries take, and the limit on them.
///
/// An entry takes a fixed share of the table, ``overhead``, and the bytes that its owner reports outside of it.
extension BoundedTable {
    /// The bytes of all entries.
    @inlinable var totalBytes: WideSum { WideSum(totalUnits, times: 16) + WideSum(table.count, times: overhead) }

    /// The bytes that an entry has outside the table, and in the arrays that only some entries need.
    @inlinable @inline(__always)
    static func bytes(of key: Key, cost: Int) -> Int {
        let outside = cost + EntryBytes.ofKey(key, encodedCount: 0)
        return outside == 0 ? 0 : outside + EntryBytes.ofCost + EntryBytes.ofUnits
    }

    /// A Boolean value that indicates whether an entry of this cost and these bytes is kept at all.
    @inlinable
    func admits(cost: Int, bytes: Int) -> Bool {
        cost <= costLimit && Int(EntryBytes.units(bytes)) <= unitLimit && countLimit > 0
    }

    /// Changes the maximum number of bytes that the entries take; `Int.max` is no limit.
    mutating func limitBytes(to limit: Int) {
        byteLimit = limit
        (unitLimit, entryBound) = Self.bounds(byteLimit: limit, overhead: overhead)
    }

    /// Returns the greatest number of units of one entry, and the greatest number of entries, that a limit allows.
    static func bounds(byteLimit: Int, overhead: Int) -> (unitLimit: Int, entryBound: Int) {
        byteLimit == .max ? (.max, .max) : ((byteLimit - overhead) >> 4, byteLimit / overhead)
    }

    /// Returns the greatest total number of units of so many entries.
    @inlinable @inline(__always)
    func unitBound(count: Int) -> Int { byteLimit == .max ? .max : (byteLimit &- count &* overhead) >> 4 }

    @inlinable @inline(__always)
    func units(of index: UInt32) -> UInt32 { Int(index) < units.count ? units[Int(index)] : 0 }

    /// Lengthens an array by index so that it has an index: at most to twice that, and to the capacity of the table.
    // Inlinable: without specialization it took most of the time of a new entry with a String key.
    @inlinable
    static func extend<Element>(
        _ array: inout [Element], with nothing: Element, to index: UInt32, within capacity: UInt32
    ) {
        let count = min(Int(capacity), max(16, Int(index) * 2))
        var extended = [Element](repeating: nothing, count: count)
        for index in array.indices { extended[index] = array[index] }
        array = extended
    }

    // MARK: The capacity of the table

    /// The number of entries for which the table should have capacity, estimated from the present ones.
    ///
    /// A table that doubled its capacity at nine tenths of a limit would take almost twice as much as the limit counts.
    @usableFromInline var wantedRoom: Int {
        guard hasUnits, byteLimit != .max, table.count > 0 else { return effectiveCountLimit }
        let average = totalBytes.double / Double(table.count)
        // A share of 1/32 more, since the next entries may be smaller.
        return min(effectiveCountLimit, Int(Double(byteLimit) / average * (33.0 / 32.0)))
    }

    /// Shrinks the table if much of it is empty: more than half, or more than a sixteenth of the limit on bytes.
    ///
    /// - Complexity: O(n) where it does, after a number of removals that grows with n.
    // Inlinable, as what it calls: all keys are hashed again, which is slow if it is not specialized.
    @inlinable
    mutating func giveBackRoom() {
        let empty = Int(table.nodeCapacity) - 1 - table.count
        guard empty > 1024, sweeps == 0 else { return }
        let isMuch = byteLimit != .max && empty > byteLimit / 16 / overhead
        guard isMuch || empty > table.count else { return }
        let origins = table.shrink(to: table.count + table.count / 32)
        Self.rearrange(&costs, 0, origins, to: Int(table.nodeCapacity))
        Self.rearrange(&units, 0, origins, to: Int(table.nodeCapacity))
        Self.rearrange(&ends, .max, origins, to: Int(table.nodeCapacity))
        Self.rearrange(&rests, EntryRest(), origins, to: Int(table.nodeCapacity))
        Self.rearrange(&ages, usualAge, origins, to: Int(table.nodeCapacity))
    }

    /// Moves each entry's elements to the entry's new index.
    @inlinable
    static func rearrange<Element>(
        _ array: inout [Element], _ nothing: Element, _ origins: [UInt32], to count: Int
    ) {
        if array.isEmpty { return }
        var arranged: [Element] = []
        arranged.reserveCapacity(count)
        for origin in origins { arranged.append(Int(origin) < array.count ? array[Int(origin)] : nothing) }
        arranged.append(contentsOf: repeatElement(nothing, count: count - arranged.count))
        array = arranged
    }
}
