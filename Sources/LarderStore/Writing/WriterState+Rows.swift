internal import Foundation
internal import LarderSQLite

extension WriterState {
    /// Does the work of a change, and counts it.
    func rows(_ work: Change.Work, in incarnation: Incarnation) throws -> Outcome {
        var outcome = Outcome()
        switch work {
        case .put(let entries):
            outcome.rows.reserveCapacity(entries.count)
            for entry in entries { try put(entry, in: incarnation, &outcome) }
        case .remove(let keys): for key in keys { try remove(key, in: incarnation, &outcome) }
        case .take(let key): try take(key, in: incarnation, &outcome)
        case .attributes(let key, let change, let moment):
            try self.change(key, change, at: moment, in: incarnation, &outcome)
        case .clear:
            outcome.cleared = counts[incarnation.id]?.totals
            try clear(incarnation)
            return outcome
        case .note(let contents):
            for (number, content) in contents { try setNote(number, content, of: incarnation.cache.name) }
            return outcome
        }
        counts.add(outcome.difference, to: incarnation.id)
        return outcome
    }

    /// Returns the entry of a key; nil if there is none, or if its checksum does not fit.
    package func row(_ key: StoredKey, of declaration: CacheDeclaration) throws(StoreError) -> StoredRow? {
        guard let incarnation = incarnation(of: declaration) else { return nil }
        do {
            return try row(key, in: incarnation)
        } catch {
            open.readFailure = error
            throw StoreError(any: error)
        }
    }

    private func row(_ key: StoredKey, in incarnation: Incarnation) throws -> StoredRow? {
        guard let found = try connection.row(key, in: incarnation, accesses) else { return nil }
        if let files { return try files.complete(found) }
        return found.isSound && found.header.file == nil ? found : nil
    }

    private func put(_ entry: EntryWrite, in cache: Incarnation, _ outcome: inout Outcome) throws {
        now = entry.writtenAt
        // Other programs may leave files that no row names.
        if entry.file != nil { upkeep?.ask(at: now.addingSaturated(Self.day), from: now) }
        let old = try connection.find(entry.key, in: cache, accesses)?.header
        var meta = entry.meta
        if entry.keepsPin { meta.isPinned = old?.meta.isPinned ?? false }
        let revision = newRevision()
        let id = try write(entry, meta, revision, over: old, in: cache)
        noteEnd(of: cache, entry.expiresAt, meta, writtenAt: entry.writtenAt, id)
        outcome.difference += Totals(count: old == nil ? 1 : 0, size: entry.size - (old?.size ?? 0))
        let rule = cache.rule.of(expiresAt: entry.expiresAt, slidingAge: meta.slidingAge)
        let row = RowSummary(
            id: id, revision: revision, rule, writtenAt: entry.writtenAt, accessedAt: entry.writtenAt,
            meta.refresh)
        outcome.rows.append(.init(key: entry.key, row: row))
    }

    /// Writes a row, in place of an old one if there is one, and returns its id.
    func write(
        _ entry: EntryWrite, _ meta: RowMeta, _ revision: Int64, over old: EntryHeader?, in cache: Incarnation
    ) throws -> Int64 {
        if let file = entry.file {
            // After a move the file is not beside its row.
            try database.requirePlace()
            if try files?.contains(file) != true { throw StoreError.fileDeleted }
        }
        let packed = meta.packed
        let columns = RowChecksum.ofColumns(
            cache: cache.id, key: entry.key, writtenAt: entry.writtenAt, expiresAt: entry.expiresAt, meta: packed)
        let checksum = columns ^ entry.payloadChecksum
        if old == nil { lastID += 1 }
        let id = old?.id ?? lastID
        try connection.with(old == nil ? .insertRow : .updateRow) { row throws(SQLiteError) in
            try row.bind(revision, at: 1)
            try row.bind(entry.writtenAt, at: 2)
            if let end = entry.expiresAt { try row.bind(end, at: 3) }
            try row.bind(checksum, at: 4)
            if packed != nil { try row.bind(packed, at: 5) }
            try row.bind(id, at: 7)
            try row.bind(cache.id, at: 10)
            try row.bind(entry.key, at: 11)
            if let file = entry.file {
                try row.bind(file, at: 8)
                try row.bind(Int64(entry.payloadSize), at: 9)
                return try row.run()
            }
            let result: Result<Void, SQLiteError> = entry.payload.withUnsafeBytes { bytes in
                Result { () throws(SQLiteError) in
                    try row.binding(blob: bytes, at: 6) { row throws(SQLiteError) in try row.run() }
                }
            }
            try result.get()
        }
        try connection.requireChange()
        try insertTags(meta.tags, in: cache.id, id: id, revision)
        if let old { try noteReplacement(of: old, entry, in: cache.id) }
        limiter.noteWrite(id)
        return id
    }

    /// Removes an entry whose payload the caller gets.
    private func take(_ key: StoredKey, in cache: Incarnation, _ outcome: inout Outcome) throws {
        let row = try connection.row(key, in: cache, accesses)
        try remove(key, in: cache, &outcome)
        var isSound = row?.isSound ?? true
        if let file = row?.header.file {
            // It is read once the transaction is over, and then discarded. A damaged row may name that of another row.
            open.displacedFiles.removeAll { $0 == file }
            isSound = try connection.number(.namesFile, text: file) == nil
            // No process deletes it in the meantime for its age.
            try files?.makeYoung(file)
            outcome.files = files
        }
        if isSound {
            outcome.taken = row
        } else {
            open.notices.append(.event(.damagedEntry(cache: cache.cache.name, key: key)))
        }
    }

    private func remove(_ key: StoredKey, in cache: Incarnation, _ outcome: inout Outcome) throws(SQLiteError) {
        guard let old = try connection.find(key, in: cache, accesses)?.header else { return }
        try delete(old, from: cache.id, isOfIndex: true)
        outcome.difference += Totals(count: -1, size: -old.size)
        outcome.rows.append(.init(key: key, row: nil))
    }

    /// Removes a row that does not fit its checksum or cannot be decoded, unless it was replaced.
    func removeDamaged(
        _ header: EntryHeader, of declaration: CacheDeclaration, _ cause: RemovedRow.Cause
    ) throws(SQLiteError) {
        // The files of a store that was moved are not at the path.
        try database.requirePlace()
        guard let cache = incarnation(of: declaration), try remove(header, ifUnchangedIn: cache, cause),
            let file = header.file
        else { return }
        // A damaged row may name the file of a sound one.
        if try connection.number(.namesFile, text: file) != nil { open.displacedFiles.removeAll { $0 == file } }
    }

    /// Removes a row unless it was written since, and returns whether it was there.
    func remove(_ header: EntryHeader, ifUnchangedIn cache: Incarnation, _ cause: RemovedRow.Cause) throws(SQLiteError)
        -> Bool
    {
        guard let (now, incarnation) = try connection.header(header.id), incarnation == cache.id,
            now.revision == header.revision
        else { return false }
        // A damaged index has shown the row of another key, which is whole.
        if now.key != header.key { throw SQLiteError.damagedIndex }
        try remove(now, from: incarnation, cause)
        return true
    }

    /// Removes a row by its age, a limit or a tag, which memory learns after the commit.
    func remove(
        _ header: EntryHeader, from incarnation: Int64, _ cause: RemovedRow.Cause, isOfIndex: Bool = false
    ) throws(SQLiteError) {
        try delete(header, from: incarnation, isOfIndex: isOfIndex)
        if let cache = incarnations.incarnation(withID: incarnation) {
            noteRemoval(of: header, from: cache, cause)
        } else {
            counts.add(Totals(count: -1, size: -header.size), to: incarnation)
        }
    }

    /// Notes that a row of a live cache was deleted, which memory learns after the commit.
    func noteRemoval(of header: EntryHeader, from cache: Incarnation, _ cause: RemovedRow.Cause) {
        counts.add(Totals(count: -1, size: -header.size), to: cache.id)
        open.removedRows[cache.cache.identity, default: []].append(
            RemovedRow(key: header.key, id: header.id, revision: header.revision, cause: cause))
    }

    /// Deletes a row with its tags and accesses.
    ///
    /// - Parameter isOfIndex: A Boolean value that indicates whether the index of keys has shown the row, and not its id. A
    ///   damaged one may have shown that of another key.
    func delete(_ header: EntryHeader, from incarnation: Int64, isOfIndex: Bool = false) throws(SQLiteError) {
        if isOfIndex {
            try connection.run(.deleteRowOfKey) { row throws(SQLiteError) in
                try row.bind(header.id, at: 1)
                try row.bind(incarnation, at: 2)
                try row.bind(header.key, at: 3)
            }
            try connection.requireChange()
        } else {
            try connection.run(.deleteRow, header.id)
        }
        try connection.run(.deleteUse, header.id)
        try noteDeletion(of: header, from: incarnation)
    }

    /// Deletes the tags of a row that was deleted, and records its file.
    func noteDeletion(of header: EntryHeader, from incarnation: Int64) throws(SQLiteError) {
        try deleteTags(header.meta.tags, in: incarnation, id: header.id)
        if let file = header.file { open.displacedFiles.append(file) }
        if header.meta.isPinned { notePinGone() }
    }

    /// Records that a row was replaced: its file and some of its tags are displaced, and it keeps its id.
    private func noteReplacement(of old: EntryHeader, _ entry: EntryWrite, in cache: Int64) throws(SQLiteError) {
        if let file = old.file { open.displacedFiles.append(file) }
        try deleteTags(old.meta.tags.filter { !entry.meta.tags.contains($0) }, in: cache, id: old.id)
        if old.meta.isPinned { notePinGone() }
    }

    /// Notes when a row ends that was just written or touched.
    private func noteEnd(
        of cache: Incarnation, _ expiresAt: Int64?, _ meta: RowMeta, writtenAt: Int64, _ id: Int64
    ) {
        let rule = cache.rule.of(expiresAt: expiresAt, slidingAge: meta.slidingAge)
        let end = rule.end(writtenAt: writtenAt, accessedAt: writtenAt, id: id)
        counts.note(end: end, of: cache.id)
        if end != .max { upkeep?.ask(forRemovalAt: cache.removal(at: end), from: now) }
    }

    private func change(
        _ key: StoredKey, _ change: AttributeChange, at moment: Int64, in cache: Incarnation,
        _ outcome: inout Outcome
    ) throws {
        guard let (old, checksum) = try connection.find(key, in: cache, accesses) else { return }
        if case .renew(let row, _) = change {
            if old.id != row.id || old.revision != row.revision { return }
        } else if old.end < moment {
            // An entry that has expired stays so.
            return
        }
        var (meta, writtenAt, expiresAt) = (old.meta, old.writtenAt, old.expiresAt)
        switch change {
        case .extendedData(let data):
            let size = Int64(data?.count ?? 0)
            if size > meta.extendedData?.count ?? 0 { try limiter.check(old.payloadSize + size, in: cache) }
            meta.extendedData = data
        case .pin(let isPinned): meta.isPinned = isPinned
        case .touch(let moment, let age):
            now = moment
            if old.end < moment { return }
            if let age {
                expiresAt = meta.setOwnAge(age, writtenAt: moment)
            } else {
                expiresAt = old.ownEnd(ifWrittenAt: moment)
            }
            writtenAt = moment
        case .renew(_, let moment):
            now = moment
            (writtenAt, expiresAt) = (moment, old.ownEnd(ifWrittenAt: moment))
        }
        let packed = meta.packed
        let revision = newRevision()
        let before = RowChecksum.ofColumns(
            cache: cache.id, key: key, writtenAt: old.writtenAt, expiresAt: old.expiresAt, meta: old.meta.packed)
        let after = RowChecksum.ofColumns(
            cache: cache.id, key: key, writtenAt: writtenAt, expiresAt: expiresAt, meta: packed)
        try connection.run(.updateAttributes) { row throws(SQLiteError) in
            try row.bind(revision, at: 1)
            try row.bind(writtenAt, at: 2)
            if let expiresAt { try row.bind(expiresAt, at: 3) }
            try row.bind(checksum ^ before ^ after, at: 4)
            try row.bind(packed, at: 5)
            try row.bind(old.id, at: 6)
            try row.bind(cache.id, at: 7)
            try row.bind(key, at: 8)
        }
        try connection.requireChange()
        try insertTags(meta.tags, in: cache.id, id: old.id, revision)
        // An access that is not stored yet names the old revision.
        if let accessedAt = accesses.lastAccess(old.id, old.revision) {
            try store(Access(id: old.id, revision: revision, moment: accessedAt, grain: 0))
        }
        limiter.noteWrite(old.id)
        if longRemovals > 0 { replacedRevisions[old.revision] = revision }
        // A row that was pinned may be what a limit waits for.
        if old.meta.isPinned { notePinGone() }
        noteEnd(of: cache, expiresAt, meta, writtenAt: writtenAt, old.id)
        let size = Int64((meta.extendedData?.count ?? 0) - (old.meta.extendedData?.count ?? 0))
        outcome.difference += Totals(size: size)
        let rule = cache.rule.of(expiresAt: expiresAt, slidingAge: meta.slidingAge)
        let row = RowSummary(
            id: old.id, revision: revision, rule, writtenAt: writtenAt, accessedAt: max(writtenAt, old.accessedAt),
            meta.refresh)
        outcome.rows.append(.init(key: key, row: row))
    }
}

/// Entries that belong together: those with a tag, and those whose keys begin with a text.
///
/// A tag of an entry is a row with the revision of the entry.
/// A row whose revision is not the entry's is ignored, and deleted with the entry or its incarnation.
extension WriterState {
    func insertTags(_ tags: [String], in cache: Int64, id: Int64, _ revision: Int64) throws(SQLiteError) {
        for tag in tags { try connection.run(.insertTag, text: tag, cache, id, revision) }
    }

    func deleteTags(_ tags: [String], in cache: Int64, id: Int64) throws(SQLiteError) {
        for tag in tags { try connection.run(.deleteTag, text: tag, cache, id) }
    }

    /// Removes the entries that have a tag, of a cache or of all, unless they are too many.
    ///
    /// Loads that run do not store results with the tag.
    ///
    /// - Returns: The number of removed entries; nil if there are more than `limit`, of which none is removed.
    func removeTagged(_ tag: String, in declaration: CacheDeclaration?, atMost limit: Int) throws -> Int? {
        let caches = try overtakeLoads(tagged: tag, in: declaration)
        var found: [(id: Int64, cache: Int64)] = []
        for cache in caches {
            found += try connection.list(.taggedRows, text: tag, cache.id, Int64(limit - found.count + 1)) {
                ($0.int64(0), cache.id)
            }
            if found.count > limit { return nil }
        }
        for (id, cache) in found {
            if let (header, _) = try connection.header(id) { try remove(header, from: cache, .tagged) }
        }
        return found.count
    }

    /// Keeps loads that run from storing results with a tag, and returns the caches in which it may be.
    func overtakeLoads(tagged tag: String, in declaration: CacheDeclaration?) throws(StoreError) -> [Incarnation] {
        if let declaration, incarnation(of: declaration) == nil { throw StoreError.superseded }
        let caches = incarnations.values.filter {
            declaration == nil || $0.cache.identity.name == declaration?.identity.name
        }
        // After the commit: a load that begins before may still be given the tag by what was there. Until then no load stores a result.
        open.overtaken.append((.tagged(tag), caches.map(\.cache.identity)))
        return Array(caches)
    }

    /// Removes the entries whose keys are texts that begin so, unless they are too many.
    ///
    /// Loads that run for such keys do not store their results.
    ///
    /// - Returns: The number of removed entries; nil if there are more than `limit`, of which none is removed.
    func removeAll(prefix: String, in declaration: CacheDeclaration, atMost limit: Int) throws -> Int? {
        let cache = try overtakeLoads(prefix: prefix, in: declaration)
        let found = try connection.headers(prefix: prefix, in: cache, atMost: limit + 1) { $0 }
        if found.count > limit { return nil }
        for header in found { try remove(header, from: cache.id, .removed, isOfIndex: true) }
        return found.count
    }

    /// Keeps loads that run for keys that begin so from storing their results, and returns the cache.
    func overtakeLoads(prefix: String, in declaration: CacheDeclaration) throws(StoreError) -> Incarnation {
        guard let cache = incarnation(of: declaration) else { throw StoreError.superseded }
        open.overtaken.append((.prefix(prefix), [declaration.identity]))
        return cache
    }

    /// Removes rows that were not written since they were listed, and returns their number.
    ///
    /// - Parameter range: What their keys are in.
    func remove(
        _ rows: some Sequence<ListedRow>, in range: KeyRange, _ cause: RemovedRow.Cause
    ) throws(SQLiteError) -> Int {
        var count = 0
        for row in rows {
            guard let (header, incarnation) = try connection.header(row.id), incarnation == row.cache else { continue }
            // Another age or pin leaves the value.
            var revision = row.revision
            while revision != header.revision, let next = replacedRevisions[revision] { revision = next }
            if header.revision != revision { continue }
            if !range.contains(header.key) { throw SQLiteError.damagedIndex }
            try remove(header, from: incarnation, cause)
            count += 1
        }
        return count
    }
}

/// A row that is to be removed unless it is written before.
struct ListedRow {
    let id: Int64
    let revision: Int64
    let cache: Int64
}

extension Connection {
    /// Lists what a closure makes of the headers of entries whose keys are texts that begin so.
    mutating func headers<R>(
        prefix: String, in cache: Incarnation, atMost limit: Int = .max, _ body: (EntryHeader) -> R
    ) throws(SQLiteError) -> [R] {
        var (found, last) = ([R](), PagePosition?.none)
        repeat {
            last = try page(
                SQL.headerPages, keyColumn: 8, KeyRange(prefix: prefix), after: last, CacheRows.pageLimit, in: cache
            ) {
                found.append(body($1.header($0, by: cache.rule)))
                return 0
            }
        } while last != nil && found.count < limit
        return found
    }
}
