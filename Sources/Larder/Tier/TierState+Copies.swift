internal import LarderSQLite

extension TierState {
    /// A copy with the revision of its row.
    struct SeenCopy {
        let value: Value
        let end: Int64
        /// True if no comparison with the row is needed.
        let isKnown: Bool
        let revision: Int64
    }

    /// Returns the copy of a key, which does not count as access.
    func copy(of key: Key, hash: UInt64) -> SeenCopy? {
        let (index, epoch) = (memory.table.locate(key, hash: hash), epoch())
        if index == 0 { return nil }
        let copy = memory.table.value(at: index)
        return SeenCopy(
            value: copy.value, end: copy.end, isKnown: copy.epoch == epoch && epoch != CommitWatch.noEpoch,
            revision: memory.rests[Int(index)].revision)
    }
}
