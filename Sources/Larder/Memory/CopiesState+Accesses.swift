public import LarderStore

/// The accesses that memory serves, which the store stamps later.
extension CopiesState {
    /// Returns the next place in the order of use: behind the last one here, and behind the last read of the disk or write.
    @inlinable @inline(__always)
    mutating func nextPlace() -> Int64 {
        lastPlace = max(lastPlace, uses.latestPlace) &+ 1
        return lastPlace
    }

    /// Returns the accesses since the last call, the oldest first.
    mutating func takeAccesses(at now: Int64) -> [Access] {
        var found: [Access] = []
        var index = memory.table.mostRecent
        while index != 0, memory.table.stamp(of: index).number >= takenPlace {
            if let access = memory.access(at: index, since: takenPlace, accessGrain) { found.append(access) }
            index = memory.table.older(than: index)
        }
        lastMoment = isSystemTime ? SystemClock.coarseNow() : max(lastMoment, now)
        // Later accesses are behind all of these.
        takenPlace = lastPlace + 1
        uses.raise(to: lastPlace)
        defer { evictedAccesses = [] }
        return evictedAccesses + found.reversed()
    }

    /// Keeps the access to an entry that leaves memory.
    mutating func keepAccess(at index: UInt32) {
        if let access = memory.access(at: index, since: takenPlace, accessGrain) { evictedAccesses.append(access) }
    }

    /// Returns the accesses of entries that were evicted since the last call.
    @inlinable
    mutating func takeEvictedAccesses() -> [Access] {
        if evictedAccesses.isEmpty { return [] }
        defer { evictedAccesses = [] }
        return evictedAccesses
    }

    /// Evicts the least recently used entries of a slice while a condition holds, and returns whether it holds no more.
    mutating func trim(
        atMost count: Int, isEviction: Bool, _ discards: inout [Node], while isTooMuch: (borrowing Memory) -> Bool
    ) -> Bool {
        for _ in 0..<count {
            guard memory.table.count > 0, isTooMuch(memory) else {
                memory.giveBackRoom()
                return true
            }
            let oldest = memory.table.leastRecent
            keepAccess(at: oldest)
            if isEviction { counts.memoryEvictions += 1 }
            discards.append(memory.remove(oldest))
        }
        return false
    }
}

extension MemoryCacheState {
    /// Returns the access to an entry since a place in the order of use; nil if there was none.
    @inlinable
    func access<Content>(
        at index: UInt32, since place: Int64, _ grain: Int64
    ) -> Access? where Value == MemoryCopy<Content> {
        let (stamp, rest) = (table.stamp(of: index), rests[Int(index)])
        guard stamp.number >= place, stamp.moment != .min else { return nil }
        let age = Int(index) < ages.count && table.value(at: index).slides ? ages[Int(index)] : .max
        return Access(
            id: rest.id, revision: rest.revision, moment: stamp.moment, place: stamp.number, grain: min(grain, age / 16)
        )
    }
}
