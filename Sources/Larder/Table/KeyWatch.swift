/// A key that a closure of the program decides on outside the lock: a write in the meantime is the later one.
@usableFromInline
struct KeyWatch<Key: Hashable & Sendable>: Sendable {
    let number: Int
    let key: Key
    let hash: UInt64
    /// A Boolean value that indicates whether an `update` of the key runs.
    let isUpdate: Bool
    /// A Boolean value that indicates whether the key was written or removed since.
    var isWritten = false
}

extension BoundedTable {
    /// Watches keys, and returns the number of the watch.
    mutating func watch(_ keys: some Sequence<(key: Key, hash: UInt64)>, isUpdate: Bool = false) -> Int {
        lastWatch += 1
        for (key, hash) in keys {
            watches.append(KeyWatch(number: lastWatch, key: key, hash: hash, isUpdate: isUpdate))
        }
        return lastWatch
    }

    /// Ends a watch, and returns its keys in their order, to be released outside the lock.
    mutating func endWatch(_ number: Int) -> [KeyWatch<Key>] {
        let start = firstWatch(number)
        let end = watches[start...].firstIndex { $0.number != number } ?? watches.count
        defer { watches.removeSubrange(start..<end) }
        return Array(watches[start..<end])
    }

    /// Returns whether the first key of a watch was written.
    func isWritten(_ number: Int) -> Bool { watches[firstWatch(number)].isWritten }

    /// Returns the first place of a watch that has not ended: they are in the order of their numbers.
    private func firstWatch(_ number: Int) -> Int {
        var (low, high) = (0, watches.count)
        while low < high {
            let middle = (low + high) / 2
            if watches[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Notes that a key is written or removed.
    @usableFromInline
    mutating func noteWrite(_ key: Key, hash: UInt64) {
        for watch in watches.indices where watches[watch].hash == hash && watches[watch].key == key {
            watches[watch].isWritten = true
        }
    }
}
