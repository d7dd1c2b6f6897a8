extension CopiesState {
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

    /// Returns the next copy of a part of an iteration's order that is there and has not expired.
    func step(
        _ order: [UInt32], from position: inout Int, to end: Int, in walk: UInt64, now: Int64
    ) -> (key: Key, copy: SeenCopy)? {
        while position < end {
            let index = order[position]
            position += 1
            guard memory.table.isThere(index, in: walk) else { continue }
            let copy = copy(at: index)
            if copy.end >= now { return (memory.table.key(at: index), copy) }
        }
        return nil
    }

    private func copy(at index: UInt32) -> SeenCopy {
        let copy = memory.table.value(at: index)
        return SeenCopy(
            value: copy.value, end: copy.end, epoch: known(copy.epoch), revision: memory.rests[Int(index)].revision)
    }
}
