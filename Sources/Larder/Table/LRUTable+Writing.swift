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

    /// Adds a key that ``locate(_:hash:)`` did not find, as the most recently used.
    ///
    /// - Parameter limit: The maximum number of entries of the owner; the table grows no further than that.
    @inlinable @inline(__always)
    package mutating func insert(_ key: Key, _ value: consuming Value, hash: UInt64, limit: Int) -> UInt32 {
        if isFull { grow(limit: limit) }
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
        enter(index, tag: Self.tag(of: hash))
        return index
    }

    /// Puts a key that ``locate(_:hash:)`` did not find in the place of the least recently used entry, and returns the old
    /// node.
    @inlinable @inline(__always)
    package mutating func replaceLeastRecent(
        with key: Key, _ value: consuming Value, hash: UInt64
    ) -> (key: Key, value: Value) {
        let oldest = leastRecent
        removals &+= 1
        index.leave(oldest, tag: tag(of: oldest))
        var oldKey = key
        swap(&nodes[Int(oldest)].key, &oldKey)
        swap(&nodes[Int(oldest)].value, &value)
        promote(oldest)
        enter(oldest, tag: Self.tag(of: hash))
        return (oldKey, value)
    }

    /// Removes an entry, and returns its node, to be released outside the lock.
    @inlinable
    package mutating func remove(_ removed: UInt32) -> Node {
        removals &+= 1
        index.leave(removed, tag: tag(of: removed))
        log.remove(removed)
        count &-= 1
        let node = (nodes + Int(removed)).move()
        log.positions[removed] = Self.freeMark | freeHead
        freeHead = removed
        return node
    }

    /// Enters an entry into the index.
    @inlinable @inline(__always)
    mutating func enter(_ entry: UInt32, tag: UInt32) {
        if let tags { tags[Int(entry)] = tag }
        index.enter(entry, tag: tag)
    }
}
