/// The methods that change the table.
extension LRUTable {
    /// Makes an entry the most recently used.
    @inlinable @inline(__always)
    package mutating func promote(_ index: UInt32) { log.touch(index) }

    /// Makes an entry the most recently used, at a time.
    @inlinable @inline(__always)
    package mutating func promote(_ index: UInt32, at time: UInt32) { log.touch(index, at: time) }

    /// Replaces the value of an entry, and returns the old one, to be released outside the lock.
    @inlinable @inline(__always)
    package mutating func exchange(_ value: consuming Value, at index: UInt32) -> Value {
        if !walks.isEmpty { note(Self.replaced, of: index) }
        swap(&nodes[Int(index)].value, &value)
        return value
    }

    /// Lets the owner change a value in place.
    ///
    /// The closure runs under the owner's lock, so it must not run user code.
    @inlinable
    package mutating func withValue<R>(at index: UInt32, _ body: (inout Value) -> R) -> R {
        body(&nodes[Int(index)].value)
    }

    /// Adds a key that ``locate(_:hash:)`` did not find just now, as the most recently used.
    ///
    /// - Parameter limit: The maximum number of entries of the owner; the table grows no further than that.
    @inlinable @inline(__always)
    package mutating func insert(
        _ key: Key, _ value: consuming Value, hash: UInt64, at place: Place, limit: Int
    ) -> UInt32 {
        var position = place.position
        if isFull {
            grow(limit: limit)
            position = locate(key, hash: hash).position
        }
        let index: UInt32
        if freeHead != 0 {
            index = freeHead
            freeHead = log.positions[index] & ~Self.freeMark
        } else {
            index = highWater
            highWater &+= 1
        }
        (nodes + Int(index)).initialize(to: Node(key: key, value: value))
        log.append(index)
        count &+= 1
        openSlot(at: position, for: index, tag: Self.tag(of: settled(hash, of: key)))
        return index
    }

    /// Puts a key that ``locate(_:hash:)`` did not find just now in the place of the least recently used entry, and
    /// returns the old node.
    @inlinable @inline(__always)
    package mutating func replaceLeastRecent(
        with key: Key, _ value: consuming Value, hash: UInt64, at place: Place
    ) -> (key: Key, value: Value) {
        let index = leastRecent
        let tag = Self.tag(of: settled(hash, of: key))
        if !walks.isEmpty { note(Self.removed, of: index) }
        var position = place.position
        let closed = self.position(of: index)
        let end = closeSlot(at: closed)
        // Changes after the new key's place, or before its home, do not move its place.
        if closed < position && end >= home(of: tag) { position = locate(key, hash: hash).position }
        var oldKey = key
        swap(&nodes[Int(index)].key, &oldKey)
        swap(&nodes[Int(index)].value, &value)
        promote(index)
        openSlot(at: position, for: index, tag: tag)
        return (oldKey, value)
    }

    /// Removes an entry, and returns its node, to be released outside the lock.
    @inlinable
    package mutating func remove(_ index: UInt32) -> Node {
        remove(Place(index: index, position: position(of: index)))
    }

    /// Removes an entry that ``locate(_:hash:)`` found just now.
    @inlinable
    package mutating func remove(_ place: Place) -> Node {
        let index = place.index
        if !walks.isEmpty { note(Self.removed, of: index) }
        _ = closeSlot(at: place.position)
        log.remove(index)
        count &-= 1
        let node = (nodes + Int(index)).move()
        log.positions[index] = Self.freeMark | freeHead
        freeHead = index
        return node
    }

    /// Puts an entry's slot at a position, and moves the following slots, up to the next empty one, one on.
    @inlinable @inline(__always)
    mutating func openSlot(at position: Int, for index: UInt32, tag: UInt64) {
        if let tags { tags[Int(index)] = UInt32(truncatingIfNeeded: tag) }
        var carried = tag << 32 | UInt64(index)
        var end = position
        while true {
            let next = slots[end]
            slots[end] = carried
            if next == 0 { break }
            carried = next
            end &+= 1
        }
        // The last slot ends every search, so this loop too; if it was filled now, there are no slots left.
        if isCrowded(home: home(of: tag), position: position, end: end) { makeRoom() }
    }

    /// Moves the slots after a removed one back over it, as far as they are after their homes.
    ///
    /// - Returns: The last slot that changed.
    @inlinable @inline(__always)
    mutating func closeSlot(at position: Int) -> Int {
        var hole = position
        while true {
            let next = slots[hole &+ 1]
            if next == 0 || home(of: next >> 32) == hole &+ 1 { break }
            slots[hole] = next
            hole &+= 1
        }
        slots[hole] = 0
        return hole
    }

    /// Finds the slot of an entry without comparing keys.
    @inlinable @inline(__always)
    func position(of index: UInt32) -> Int {
        let tag: UInt64
        if let tags {
            tag = UInt64(tags[Int(index)])
        } else {
            let key = nodes[Int(index)].key
            tag = Self.tag(of: isFlooded ? seed.hashThroughHasher(key) : seed.hash(key))
        }
        let wanted = tag << 32 | UInt64(index)
        var position = home(of: tag)
        while slots[position] != wanted { position &+= 1 }
        return position
    }
}
