/// A key that a closure of the program decides on outside the lock: a write in the meantime is the later one.
@usableFromInline
struct KeyWatch<Key: Hashable & Sendable>: Sendable {
    let key: Key
    let hash: UInt64
    /// A Boolean value that indicates whether an `update` of the key runs.
    let isUpdate: Bool
    /// A Boolean value that indicates whether the key was written or removed since.
    var isWritten = false
}

/// The watched keys of a table, found by their hashes: a write takes the same time however many loads run.
@usableFromInline
struct KeyWatches<Key: Hashable & Sendable>: Sendable {
    private struct Slot: Sendable {
        /// Nil while the slot is free.
        var watch: KeyWatch<Key>?
        /// The next slot with the same hash, or the next free one; -1 at the end.
        var next: Int
        /// The next slot of the same watch; -1 at the end.
        var nextOfWatch = -1
    }

    private var slots: [Slot] = []
    private var firstFree = -1
    /// The first slot of each hash.
    private var byHash: [UInt64: Int] = [:]
    /// The number of watched keys.
    @usableFromInline private(set) var count = 0

    @usableFromInline init() {}

    @inlinable var isEmpty: Bool { count == 0 }

    /// Watches keys, and returns the number of the watch; it is used again after the watch has ended.
    mutating func begin(_ keys: some Sequence<(key: Key, hash: UInt64)>, isUpdate: Bool) -> Int {
        var (first, last) = (-1, -1)
        for (key, hash) in keys {
            let slot = insert(KeyWatch(key: key, hash: hash, isUpdate: isUpdate))
            if last < 0 { first = slot } else { slots[last].nextOfWatch = slot }
            last = slot
        }
        return first
    }

    private mutating func insert(_ watch: KeyWatch<Key>) -> Int {
        let filled = Slot(watch: watch, next: byHash[watch.hash] ?? -1)
        var slot = firstFree
        if slot < 0 {
            slot = slots.count
            slots.append(filled)
        } else {
            firstFree = slots[slot].next
            slots[slot] = filled
        }
        byHash[watch.hash] = slot
        count += 1
        return slot
    }

    /// Ends a watch, and returns its keys in their order, to be released outside the lock.
    mutating func end(_ number: Int) -> [KeyWatch<Key>] {
        var (slot, ended) = (number, [KeyWatch<Key>]())
        while slot >= 0, let watch = slots[slot].watch {
            ended.append(watch)
            detach(slot, watch.hash)
            let next = slots[slot].nextOfWatch
            slots[slot] = Slot(watch: nil, next: firstFree)
            (firstFree, slot, count) = (slot, next, count - 1)
        }
        // Many loads at once leave no large table behind.
        if count == 0 && slots.count > 64 { self = KeyWatches() }
        return ended
    }

    private mutating func detach(_ slot: Int, _ hash: UInt64) {
        let next = slots[slot].next
        guard var place = byHash[hash], place != slot else {
            byHash[hash] = next < 0 ? nil : next
            return
        }
        while slots[place].next != slot { place = slots[place].next }
        slots[place].next = next
    }

    /// Returns whether the first key of a watch was written.
    func isWritten(_ number: Int) -> Bool { slots[number].watch?.isWritten ?? false }

    /// Returns whether an update of a key runs.
    func isUpdating(_ key: Key, hash: UInt64) -> Bool {
        var slot = byHash[hash] ?? -1
        while slot >= 0 {
            if let watch = slots[slot].watch, watch.isUpdate, watch.key == key { return true }
            slot = slots[slot].next
        }
        return false
    }

    /// Notes that a key is written or removed.
    @usableFromInline
    mutating func noteWrite(_ key: Key, hash: UInt64) {
        var slot = byHash[hash] ?? -1
        while slot >= 0 {
            if slots[slot].watch?.key == key { slots[slot].watch?.isWritten = true }
            slot = slots[slot].next
        }
    }

    /// Notes that all keys are removed.
    mutating func noteRemovalOfAll() {
        for slot in slots.indices { slots[slot].watch?.isWritten = true }
    }
}

extension BoundedTable {
    /// Watches keys, and returns the number of the watch.
    mutating func watch(_ keys: some Sequence<(key: Key, hash: UInt64)>, isUpdate: Bool = false) -> Int {
        watches.begin(keys, isUpdate: isUpdate)
    }

    /// Ends a watch, and returns its keys in their order, to be released outside the lock.
    mutating func endWatch(_ number: Int) -> [KeyWatch<Key>] { watches.end(number) }

    /// Returns whether the first key of a watch was written.
    func isWritten(_ number: Int) -> Bool { watches.isWritten(number) }

    /// Notes that a key is written or removed.
    @usableFromInline
    mutating func noteWrite(_ key: Key, hash: UInt64) { watches.noteWrite(key, hash: hash) }
}
