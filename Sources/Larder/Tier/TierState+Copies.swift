extension TierState {
    /// A copy with the revision of its row.
    struct SeenCopy {
        let value: Value
        let end: Int64
        let epoch: UInt32
        let revision: Int64
    }

    /// Returns the copy of a key, which does not count as access.
    func copy(of key: Key, hash: UInt64) -> SeenCopy? {
        let index = memory.table.locate(key, hash: hash)
        return index == 0 ? nil : copy(at: index)
    }

    private func copy(at index: UInt32) -> SeenCopy {
        let copy = memory.table.value(at: index)
        return SeenCopy(
            value: copy.value, end: copy.end, epoch: known(copy.epoch), revision: memory.rests[Int(index)].revision)
    }
}
