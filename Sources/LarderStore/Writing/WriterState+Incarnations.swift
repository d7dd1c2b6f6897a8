internal import LarderSQLite

extension WriterState {
    /// Returns the live incarnation of a declaration; nil if the handle is superseded.
    func incarnation(of declaration: CacheDeclaration) -> Incarnation? { incarnations.incarnation(of: declaration) }

    /// Opens a cache: under another version or codec its rows are retired.
    package func open(_ declaration: CacheDeclaration, at now: Int64) throws(StoreError) {
        try request {
            open.switchesIncarnation = true
            self.now = now
            if let old = incarnation(of: declaration) {
                try old.requireKeys(of: declaration)
                try change(declaration) { $0.cache = declaration }
                // Other ends hold now.
                if old.rule != declaration.ageRule { counts.forgetEnds(of: old.id) }
            } else {
                let old = incarnations[declaration.identity.name]
                if let old {
                    try retire(old)
                    try connection.run(.deleteNotes, text: old.cache.name)
                    let (name, version) = (old.cache.name, old.cache.version)
                    open.notices.append(
                        .event(.purged(cache: name, version: version, newVersion: declaration.version)))
                }
                try declare(Incarnation(id: 0, cache: declaration, limits: old?.limits ?? Limits()))
            }
        }
    }

    /// Opens a cache without a transaction if nothing about it changes, or else returns nil.
    ///
    /// Another process may be writing. When the cache was opened is written with the next commit.
    func openUnchanged(
        _ declaration: CacheDeclaration, _ limits: Limits?, keepsExpired: Int64, at now: Int64
    ) throws -> Opened? {
        try lookUpLimits()
        guard let cache = incarnation(of: declaration) else { return nil }
        try cache.requireKeys(of: declaration)
        guard cache.cache == declaration,
            limits ?? cache.limits == cache.limits,
            keepsExpired <= cache.keepsExpired
        else { return nil }
        self.now = now
        openingCount += 1
        unwrittenOpenings[declaration.identity] = (declaration, now)
        return Opened(
            count: openingCount, isNew: false, limits: cache.limits,
            hasStoreLimits: limiter.storeLimits != StoreLimits())
    }

    /// Sets the limits of a cache, and lets its expired rows stay for a time, unless that holds already.
    func set(_ limits: Limits?, _ keepsExpired: Int64, of declaration: CacheDeclaration) throws {
        guard let cache = incarnation(of: declaration) else { throw StoreError.superseded }
        let (limits, longest) = (limits ?? cache.limits, max(cache.keepsExpired, keepsExpired))
        if limits == cache.limits && longest == cache.keepsExpired { return }
        try change(declaration) { ($0.limits, $0.keepsExpired) = (limits, longest) }
        limiter.forgetWaits()
    }

    /// Writes when a cache was opened last, to the minute, and by which program, unless the disk is full.
    func noteOpening(of declaration: CacheDeclaration, at now: Int64) throws(SQLiteError) {
        guard !logKeeper.isShort, let cache = incarnation(of: declaration) else { return }
        try connection.run(.setOpenedAt, now, cache.id, now.subtractingSaturated(60_000))
        guard let opener = database.file?.file.options.opener else { return }
        try connection.run(.noteOpener) { row throws(SQLiteError) in
            try row.bind(opener.program, at: 1)
            try row.bind(opener.library, at: 2)
            try row.bind(now, at: 3)
        }
    }

    /// Clears all caches.
    func clearAll() throws(SQLiteError) {
        for incarnation in Array(incarnations.values) { try clear(incarnation) }
    }

    /// Removes a cache: its handles are superseded.
    func removeCache(named name: String) throws(SQLiteError) {
        openingCount += 1
        guard let incarnation = incarnations[ExactName(name)] else { return }
        open.switchesIncarnation = true
        for sql in [SQL.deleteActivity, .deleteNotes] { try connection.run(sql, text: name) }
        try retire(incarnation)
    }

    /// Writes a note next to the entries of a cache, or deletes it.
    func setNote(_ number: Int64, _ content: [UInt8]?, of cache: String) throws(SQLiteError) {
        guard let content else { return try connection.run(.deleteNote, text: cache, number) }
        try connection.run(.setNote) { row throws(SQLiteError) in
            try row.bind(cache, at: 1)
            try row.bind(number, at: 2)
            try row.bind(content, at: 3)
        }
    }

    func clear(_ incarnation: Incarnation) throws(SQLiteError) {
        let openedAt = try connection.number(.openedAt, incarnation.id)
        try retire(incarnation)
        try declare(incarnation, openedAt: openedAt)
    }

    /// Adds an incarnation with a new id that is declared as another one is.
    func declare(_ cache: Incarnation, openedAt: Int64? = nil) throws(SQLiteError) {
        open.switchesIncarnation = true
        let next = Incarnation(
            id: try newID(), cache: cache.cache, limits: cache.limits, keepsExpired: cache.keepsExpired)
        try save(next, .insertIncarnation, openedAt: openedAt)
        counts.begin(next.id)
    }

    func change(_ declaration: CacheDeclaration, _ body: (inout Incarnation) -> Void) throws {
        guard var incarnation = incarnation(of: declaration) else { throw StoreError.superseded }
        body(&incarnation)
        try save(incarnation, .updateIncarnation)
    }

    func save(_ incarnation: Incarnation, _ sql: SQL, openedAt: Int64? = nil) throws(SQLiteError) {
        try connection.save(incarnation, state: 0, openedAt: openedAt ?? now, sql)
        incarnations[incarnation.cache.identity.name] = incarnation
        limiter.noteLimits(of: incarnations)
    }

    /// Retires an incarnation, and keeps loads of its cache from storing their results, those included that begin before the
    /// commit: another thread may open the cache under the same version right after it.
    func retire(_ incarnation: Incarnation) throws(SQLiteError) {
        overtakeAllLoads(of: incarnation.cache.identity)
        try connection.save(incarnation, state: 1, openedAt: .min, .updateIncarnation)
        incarnations[incarnation.cache.identity.name] = nil
        counts.retire(incarnation.id)
        limiter.evictions[incarnation.id] = nil
        upkeep?.ask(at: now, from: now)
    }

    /// Deletes rows of retired incarnations, and the incarnations that have none left.
    ///
    /// It goes through the table in the order of ids, 10,000 at a time: neighbours are on one page.
    ///
    /// - Returns: The number of deleted rows, at most `limit`, and whether no retired incarnation is left.
    package func reclaim(atMost limit: Int) throws(StoreError) -> (deleted: Int, isDone: Bool) {
        try request { try reclaimRows(atMost: limit) }
    }

    private func reclaimRows(atMost limit: Int) throws -> (deleted: Int, isDone: Bool) {
        let retired = try connection.number(.retiredIncarnation)
        guard let retired else {
            counts.noteAllReclaimed()
            return (0, true)
        }
        if reclaimCursor.incarnation != retired { (reclaimCursor, tagCursor) = ((retired, .min), nil) }
        var deleted = 0
        for _ in 0..<10 where deleted < limit {
            // Ids without a row are skipped, however many.
            guard let from = reclaimCursor.id, let first = try connection.number(.nextID, from) else {
                if try !deleteTags(of: retired, atMost: limit) { break }
                try connection.run(.deleteIncarnation, retired)
                // A damaged page shows rows that no search by id finds.
                if connection.changes == 0 { throw SQLiteError.damagedOrder }
                break
            }
            let (last, rest) = (first.addingSaturated(9_999), Int64(limit - deleted))
            if try connection.number(.anyFile) != nil {
                open.displacedFiles += try connection.list(.retiredFiles, retired, first, last, rest) { $0.text(0) }
            }
            try connection.run(.deleteRetiredUses, retired, first, last, rest)
            try connection.run(.deleteRetiredRows, retired, first, last, rest)
            deleted += connection.changes
            counts.noteReclaimed(connection.changes)
            reclaimCursor.id = deleted == limit ? first : last == .max ? nil : last + 1
        }
        return (deleted, false)
    }

    /// Deletes tags of a retired incarnation among the next 10,000 tags, and returns whether none is left.
    ///
    /// The table is in the order of tags, so each is looked at once.
    private func deleteTags(of retired: Int64, atMost limit: Int) throws(SQLiteError) -> Bool {
        var (found, count) = ([(tag: String, entry: Int64)](), 0)
        let start = tagCursor ?? ("", .min, .min)
        try connection.with(.tagsFrom) { row throws(SQLiteError) in
            try row.bind(start.tag, at: 1)
            try row.bind(start.cache, at: 2)
            try row.bind(start.entry, at: 3)
            while found.count < limit, try row.step() {
                count += 1
                tagCursor = (row.text(0), row.int64(1), row.int64(2))
                if row.int64(1) == retired { found.append((row.text(0), row.int64(2))) }
            }
        }
        var deleted = 0
        for (tag, entry) in found {
            try connection.run(.deleteTag, text: tag, retired, entry)
            deleted += connection.changes
        }
        // A damaged tag is another text once it was read.
        return count < 10_000 && found.count < limit || deleted < found.count
    }

    /// Returns a random id above 0 that no incarnation has, of four bytes: it is in every row and in its index.
    func newID() throws(SQLiteError) -> Int64 {
        while true {
            let id = max(1, newRevision() & 0x7FFF_FFFF)
            if try connection.number(.hasIncarnation, id) == nil { return id }
        }
    }
}

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
    func write(_ entry: EntryWrite, _ revision: Int64, accessedAt: Int64, into hidden: Incarnation) throws -> Bool {
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
        let recent = try connection.ids(of: connection.recentIDs(of: old), from: old, in: hidden, accesses)
        try retire(old)
        try connection.run(.deleteNotes, text: old.cache.name)
        if !recent.isEmpty { try setNote(RecentNote.number, RecentNote.packed(recent), of: old.cache.name) }
        var next = hidden
        (next.limits, next.keepsExpired) = (old.limits, old.keepsExpired)
        open.switchesIncarnation = true
        try save(next, .updateIncarnation)
        counts.forgetEnds(of: next.id)
    }
}
