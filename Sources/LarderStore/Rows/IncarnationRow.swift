/// A row of the table `cache`, or its second copy in the index.
struct IncarnationRow {
    var incarnation: Incarnation
    /// 0 for a live incarnation, 1 for a retired one, 2 for one that a migration fills.
    let state: Int64
    /// The checksum in the row; 0 if it has none.
    let checksum: Int64
    let openedAt: Int64

    /// A Boolean value that indicates whether the row fits its checksum, or has none and can be that of a cache.
    var isSound: Bool {
        checksum == incarnation.checksum(state: state)
            || checksum == 0 && incarnation.id > 0 && !incarnation.cache.name.isEmpty && (0...2).contains(state)
    }
}

extension Incarnation {
    /// The checksum of the incarnation's row, against damage.
    func checksum(state: Int64) -> Int64 {
        let rule = rule.stored
        let numbers = [id, rule.kind, rule.milliseconds, limits.count, limits.size, keepsExpired, state]
        // A row of an earlier step keeps its checksum.
        return RowChecksum.of(
            [cache.name, cache.version, cache.codec], numbers + (cache.keyKind.map { [$0.rawValue] } ?? []))
    }
}
