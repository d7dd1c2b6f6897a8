/// A pass over a table in the order of its start, while others go on writing.
///
/// The order is copied once, four bytes an entry, in slices under the owner's lock: while that goes on, whoever changes
/// a link that has not been copied yet copies it first. From then on the table only notes, two bits an entry, which
/// entries were removed or replaced. Without a walk all of this costs one comparison.
extension LRUTable {
    @usableFromInline struct Walk {
        let identifier: UInt64
        /// The `newer` links at the start by index, `.max` where not copied yet; empty when the order is complete.
        var newer: [UInt32]
        var copied = 0
        /// Removed since the start, by index, 64 to a word.
        var removed: [UInt64]
        /// Replaced since its value was fetched last.
        var replaced: [UInt64]
        /// Whether everything was removed at once; indices mean nothing any more.
        var isCut = false

        mutating func keep(_ index: UInt32, _ newerIndex: UInt32) {
            if Int(index) < newer.count && newer[Int(index)] == .max { newer[Int(index)] = newerIndex }
        }

        static func note(_ index: UInt32, in bits: inout [UInt64]) {
            let word = Int(index / 64)
            if word < bits.count { bits[word] |= 1 << UInt64(index % 64) }
        }

        static func isNoted(_ index: UInt32, in bits: [UInt64]) -> Bool {
            bits[Int(index / 64)] & (1 << UInt64(index % 64)) != 0
        }
    }

    /// What a walk needs, allocated outside the lock.
    package struct WalkBuffers: Sendable {
        var newer: [UInt32]
        var removed: [UInt64]
        var replaced: [UInt64]

        package init(indexLimit: UInt32) {
            newer = Array(repeating: .max, count: Int(indexLimit))
            removed = Array(repeating: 0, count: Int(indexLimit) / 64 + 1)
            replaced = Array(repeating: 0, count: Int(indexLimit) / 64 + 1)
        }
    }

    /// Begins a walk, unless the table has outgrown the buffers meanwhile.
    ///
    /// The buffers are swapped out, so that nobody shares them and no write copies them under the lock.
    package mutating func beginWalk(_ identifier: UInt64, taking buffers: inout WalkBuffers) -> Bool {
        guard buffers.newer.count >= Int(highWater) else { return false }
        var walk = Walk(identifier: identifier, newer: [], removed: [], replaced: [])
        swap(&walk.newer, &buffers.newer)
        swap(&walk.removed, &buffers.removed)
        swap(&walk.replaced, &buffers.replaced)
        walks.append(walk)
        walkCount += 1
        copyingWalks += 1
        return true
    }

    /// Copies up to so many links; gives them all back, and nothing is left to copy, once they are complete.
    package mutating func copyOrder(_ identifier: UInt64, atMost slice: Int) -> [UInt32]? {
        guard let walk = self.walk(identifier) else { return [0] }
        // Out of the walk while it is filled: indexing twice would ask for its uniqueness with every link.
        var newer: [UInt32] = []
        swap(&newer, &walks[walk].newer)
        let first = walks[walk].copied
        let end = min(first + slice, newer.count)
        if !walks[walk].isCut {
            for index in first..<max(first, min(end, Int(highWater))) where newer[index] == .max {
                newer[index] = links(UInt32(index)).pointee.newer
            }
        }
        walks[walk].copied = end
        if end < newer.count && !walks[walk].isCut {
            swap(&newer, &walks[walk].newer)
            return nil
        }
        copyingWalks -= 1
        return walks[walk].isCut ? [0] : newer
    }

    /// The entries of a complete copy of links, least recent first; needs no lock.
    package static func order(from links: [UInt32]) -> [UInt32] {
        var order: [UInt32] = []
        var index = links[0]
        while index != 0 {
            order.append(index)
            index = links[Int(index)]
        }
        return order
    }

    /// Whether an entry of a walk's order is still the one it was, replaced or not.
    package func isThere(_ index: UInt32, in identifier: UInt64) -> Bool {
        guard let walk = self.walk(identifier), !walks[walk].isCut else { return false }
        return !Walk.isNoted(index, in: walks[walk].removed)
    }

    /// Begins to watch whether these entries are replaced.
    package mutating func watch(_ indices: some Sequence<UInt32>, in identifier: UInt64) {
        guard let walk = self.walk(identifier) else { return }
        for index in indices { walks[walk].replaced[Int(index / 64)] &= ~(1 << UInt64(index % 64)) }
    }

    /// Whether an entry was neither removed nor replaced since it was watched.
    package func isUntouched(_ index: UInt32, in identifier: UInt64) -> Bool {
        guard let walk = self.walk(identifier), !walks[walk].isCut else { return false }
        return !Walk.isNoted(index, in: walks[walk].removed) && !Walk.isNoted(index, in: walks[walk].replaced)
    }

    /// Ends a walk; harmless if it ended before.
    package mutating func endWalk(_ identifier: UInt64) {
        guard let walk = self.walk(identifier) else { return }
        if !walks[walk].newer.isEmpty { copyingWalks -= 1 }
        walks.remove(at: walk)
        walkCount -= 1
    }

    /// Takes the walks over from a table that was emptied by putting this one in its place.
    package mutating func adoptWalks(of emptied: inout LRUTable) {
        walks = emptied.walks
        walkCount = emptied.walkCount
        copyingWalks = emptied.copyingWalks
        emptied.walks = []
        emptied.walkCount = 0
        emptied.copyingWalks = 0
        for walk in walks.indices { walks[walk].isCut = true }
    }

    private func walk(_ identifier: UInt64) -> Int? {
        for walk in walks.indices where walks[walk].identifier == identifier { return walk }
        return nil
    }

    // MARK: What writing tells the walks

    /// Called before an entry is moved to the front: four links change.
    @usableFromInline
    mutating func keepOrder(around index: UInt32) {
        keepOrder(of: index)
        keepOrder(of: links(index).pointee.older)
        keepOrder(of: links(0).pointee.older)
    }

    /// Called before the `newer` link of a node changes.
    @usableFromInline
    mutating func keepOrder(of index: UInt32) {
        let newer = links(index).pointee.newer
        for walk in walks.indices where !walks[walk].isCut { walks[walk].keep(index, newer) }
    }

    /// Called before an entry is removed.
    @usableFromInline
    mutating func noteRemoval(of index: UInt32) {
        if copyingWalks != 0 {
            keepOrder(of: index)
            keepOrder(of: links(index).pointee.older)
        }
        for walk in walks.indices where !walks[walk].isCut { Walk.note(index, in: &walks[walk].removed) }
    }

    /// Called before an entry's value is replaced.
    @usableFromInline
    mutating func noteReplacement(of index: UInt32) {
        for walk in walks.indices where !walks[walk].isCut { Walk.note(index, in: &walks[walk].replaced) }
    }
}
