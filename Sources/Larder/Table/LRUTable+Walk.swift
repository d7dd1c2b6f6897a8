/// An iteration over a table in the order of its start, while other threads go on writing.
///
/// The order is copied at the start, four bytes an entry. From then on the table only records, one byte an entry, which
/// entries were removed or replaced. Without an iteration all of this costs one comparison.
extension LRUTable {
    @usableFromInline struct Walk {
        let identifier: UInt64
        /// The changes of each entry by its index.
        var changes: [UInt8]
    }

    /// The entry was removed since the start of the iteration.
    @inlinable static var removed: UInt8 { 1 }
    /// The entry was replaced since its value was fetched last.
    @inlinable static var replaced: UInt8 { 2 }

    /// Begins an iteration.
    ///
    /// - Returns: The iteration's number, and the indices of the entries, least recently used first.
    /// - Complexity: O(n), as ``order``.
    package mutating func beginWalk() -> (identifier: UInt64, order: [UInt32]) {
        lastWalk += 1
        walks.append(Walk(identifier: lastWalk, changes: Array(repeating: 0, count: Int(highWater))))
        return (lastWalk, order)
    }

    /// Returns whether an entry of an iteration's order was not removed since; it may have been replaced.
    package func isThere(_ index: UInt32, in identifier: UInt64) -> Bool {
        changes(of: index, in: identifier) & Self.removed == 0
    }

    /// Begins to record whether these entries are replaced.
    package mutating func watch(_ indices: some Sequence<UInt32>, in identifier: UInt64) {
        guard let walk = walks.firstIndex(where: { $0.identifier == identifier }) else { return }
        for index in indices where Int(index) < walks[walk].changes.count {
            walks[walk].changes[Int(index)] &= ~Self.replaced
        }
    }

    /// Returns whether an entry was neither removed nor replaced since it was watched.
    package func isUntouched(_ index: UInt32, in identifier: UInt64) -> Bool {
        changes(of: index, in: identifier) == 0
    }

    /// Returns the changes of an entry; all flags if the iteration has ended, or if all entries were removed at once.
    private func changes(of index: UInt32, in identifier: UInt64) -> UInt8 {
        guard let walk = walks.first(where: { $0.identifier == identifier }), Int(index) < walk.changes.count else {
            return .max
        }
        return walk.changes[Int(index)]
    }

    /// Ends an iteration; has no effect if it has ended before.
    package mutating func endWalk(_ identifier: UInt64) {
        walks.removeAll { $0.identifier == identifier }
    }

    /// Takes the iterations over from a table that was emptied by putting this one in its place.
    package mutating func adoptWalks(of emptied: inout LRUTable) {
        walks = emptied.walks.map { Walk(identifier: $0.identifier, changes: []) }
        lastWalk = emptied.lastWalk
        emptied.walks = []
    }

    /// Called before an entry is removed or replaced.
    @usableFromInline
    mutating func note(_ change: UInt8, of index: UInt32) {
        for walk in walks.indices where Int(index) < walks[walk].changes.count {
            walks[walk].changes[Int(index)] |= change
        }
    }
}
