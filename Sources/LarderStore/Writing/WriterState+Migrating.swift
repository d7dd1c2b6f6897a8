internal import LarderSQLite

/// The rows of a migration: in a hidden incarnation, until one transaction makes it the live one.
///
/// The revision of each row follows from that of the row that it was made from, so a row that has changed since is found by a
/// comparison of the two. What was dropped has an empty row in an incarnation of its own, so that it is not looked at again.
extension WriterState {
    /// Retires what a migration that was interrupted has left.
    func retireMigration() throws(SQLiteError) {
        var left: [Incarnation] = []
        try connection.readIncarnations(.incarnations) { if $0.state == 2 { left.append($0.incarnation) } }
        for incarnation in left { try retire(hidden: incarnation) }
    }

    func retire(hidden incarnation: Incarnation) throws(SQLiteError) {
        try connection.save(incarnation, state: 1, openedAt: .min, .updateIncarnation)
        counts.retire(incarnation.id)
        upkeep?.ask(at: now, from: now)
    }

    /// Adds a hidden incarnation.
    func declareHidden(_ declaration: CacheDeclaration) throws(SQLiteError) -> Incarnation {
        let hidden = Incarnation(id: try newID(), cache: declaration)
        try connection.save(hidden, state: 2, openedAt: now, .insertIncarnation)
        counts.begin(hidden.id)
        return hidden
    }

    /// Takes a row in, which was made of one with a revision.
    ///
    /// - Returns: Whether the key is new to the incarnation.
    func take(_ entry: EntryWrite, _ revision: Int64, accessedAt: Int64, into hidden: Incarnation) throws -> Bool {
        // No copy in memory of an earlier version has it.
        let revision = ((revision >> 31) << 31) | hidden.id
        let old = try connection.find(entry.key, in: hidden, accesses)?.header
        let id = try write(entry, entry.meta, revision, over: old, in: hidden)
        counts.add(Totals(count: old == nil ? 1 : 0, size: entry.size - (old?.size ?? 0)), to: hidden.id)
        if accessedAt > entry.writtenAt {
            try store(Access(id: id, revision: revision, moment: accessedAt, grain: 0))
        }
        return old == nil
    }

    /// Removes what was made of an earlier row of a key, and returns whether there was something.
    func drop(_ key: StoredKey, from hidden: Incarnation) throws(SQLiteError) -> Bool {
        guard let old = try connection.find(key, in: hidden, accesses)?.header else { return false }
        try delete(old, from: hidden.id, isOfIndex: true)
        counts.add(Totals(count: -1, size: -old.size), to: hidden.id)
        return true
    }

    /// Removes the rows that were made of rows that are gone, and returns their number.
    func dropVanished(from hidden: Incarnation, _ old: Incarnation) throws(SQLiteError) -> Int {
        let ids = try connection.list(.vanishedRows, hidden.id, old.id) { $0.int64(0) }
        for id in ids {
            guard let (header, _) = try connection.header(id) else { continue }
            try delete(header, from: hidden.id)
            counts.add(Totals(count: -1, size: -header.size), to: hidden.id)
        }
        return ids.count
    }

    /// Makes an incarnation the live one in place of an old one, whose rows are retired.
    func replace(_ old: Incarnation, by hidden: Incarnation) throws(SQLiteError) {
        try retire(old)
        try connection.run(.deleteNotes, text: old.cache.name)
        var next = hidden
        (next.limits, next.keepsExpired) = (old.limits, old.keepsExpired)
        open.switchesIncarnation = true
        try save(next, .updateIncarnation)
        counts.forgetEnds(of: next.id)
    }
}
