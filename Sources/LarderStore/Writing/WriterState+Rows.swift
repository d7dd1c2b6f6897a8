internal import Foundation
internal import LarderSQLite

extension WriterState {
    /// Does what a request asks, in the open transaction.
    ///
    /// Refuses a superseded handle before it changes anything.
    package func perform(_ operation: RowOperation, on declaration: CacheDeclaration) throws -> Outcome {
        guard let generation = generation(of: declaration) else { throw StoreError.superseded }
        return try request { try perform(operation, in: generation) }
    }

    private func perform(_ operation: RowOperation, in generation: Generation) throws -> Outcome {
        var outcome = Outcome()
        outcome.generation = generation.id
        switch operation {
        case .put(let entries, let condition):
            guard try holds(condition, entries, in: generation.id) else { return outcome }
            outcome.rows.reserveCapacity(entries.count)
            for entry in entries { try put(entry, in: generation.id, &outcome) }
        case .remove(let keys):
            for key in keys { try remove(key, in: generation.id, &outcome) }
        case .take(let key):
            outcome.taken = try connection.row(key, in: generation.id)
            try remove(key, in: generation.id, &outcome)
        case .change(let key, let change):
            try self.change(key, change, in: generation.id, &outcome)
        case .clear:
            outcome.cleared = try totals(of: generation.id)
            outcome.generation = try clear(generation).id
        }
        if outcome.cleared == nil { add(outcome.difference, to: generation.id) }
        return outcome
    }

    /// Returns the entry of a key; nil if there is none, or if its checksum does not fit.
    package func row(_ key: StoredKey, of declaration: CacheDeclaration) throws(StoreError) -> StoredRow? {
        guard let generation = generation(of: declaration) else { return nil }
        do { return try connection.row(key, in: generation.id) } catch { throw StoreError(error) }
    }

    private func holds(_ condition: PutCondition, _ entries: [EntryWrite], in cache: Int64) throws(SQLiteError) -> Bool
    {
        switch condition {
        case .always: return true
        case .check(let isMet): return isMet()
        case .absent:
            for entry in entries where try connection.find(entry.key, in: cache) != nil { return false }
            return true
        case .unchanged(let id, let revision):
            guard entries.count == 1, let old = try connection.find(entries[0].key, in: cache) else { return false }
            return old.facts.id == id && old.facts.revision == revision
        }
    }

    // MARK: One row

    private func put(_ entry: EntryWrite, in cache: Int64, _ outcome: inout Outcome) throws(SQLiteError) {
        let old = try connection.find(entry.key, in: cache)?.facts
        var meta = entry.meta
        if entry.keepsPin { meta.isPinned = old?.meta.isPinned ?? false }
        let packed = meta.packed
        let revision = newRevision()
        let columns = RowChecksum.ofColumns(
            cache: cache, key: entry.key, writtenAt: entry.writtenAt, expiresAt: entry.expiresAt, meta: packed)
        let checksum = columns ^ entry.payloadChecksum
        try connection.with(old == nil ? .insertRow : .updateRow) { row throws(SQLiteError) in
            try row.bind(revision, at: 1)
            try row.bind(entry.writtenAt, at: 2)
            if let end = entry.expiresAt { try row.bind(end, at: 3) }
            try row.bind(checksum, at: 4)
            if packed != nil { try row.bind(packed, at: 5) }
            if let old {
                try row.bind(old.id, at: 7)
            } else {
                try row.bind(cache, at: 7)
                try row.bind(entry.key, at: 8)
            }
            let result: Result<Void, SQLiteError> = entry.payload.withUnsafeBytes { bytes in
                Result { () throws(SQLiteError) in
                    try row.binding(blob: bytes, at: 6) { row throws(SQLiteError) in try row.run() }
                }
            }
            try result.get()
        }
        let id = old?.id ?? connection.lastInsertedID
        try insertTags(meta.tags, in: cache, id: id, revision)
        let size = Int64(entry.payload.count + (meta.extendedData?.count ?? 0))
        outcome.difference += Totals(count: old == nil ? 1 : 0, size: size - (old?.size ?? 0))
        outcome.rows.append(.init(key: entry.key, id: id, revision: revision))
    }

    private func remove(_ key: StoredKey, in cache: Int64, _ outcome: inout Outcome) throws(SQLiteError) {
        guard let old = try connection.find(key, in: cache)?.facts else { return }
        for statement in [SQL.deleteRow, .deleteUse] {
            try connection.run(statement) { row throws(SQLiteError) in try row.bind(old.id, at: 1) }
        }
        outcome.difference += Totals(count: -1, size: -old.size)
        outcome.rows.append(.init(key: key, id: old.id, revision: nil))
    }

    private func change(
        _ key: StoredKey, _ change: AttributeChange, in cache: Int64, _ outcome: inout Outcome
    ) throws(SQLiteError) {
        guard let (old, checksum) = try connection.find(key, in: cache) else { return }
        var (meta, writtenAt, expiresAt) = (old.meta, old.writtenAt, old.expiresAt)
        switch change {
        case .extendedData(let data): meta.extendedData = data
        case .pin(let isPinned): meta.isPinned = isPinned
        case .touch(let moment, let end): (writtenAt, expiresAt) = (moment, end)
        }
        let packed = meta.packed
        let revision = newRevision()
        let before = RowChecksum.ofColumns(
            cache: cache, key: key, writtenAt: old.writtenAt, expiresAt: old.expiresAt, meta: old.meta.packed)
        let after = RowChecksum.ofColumns(
            cache: cache, key: key, writtenAt: writtenAt, expiresAt: expiresAt, meta: packed)
        try connection.run(.updateAttributes) { row throws(SQLiteError) in
            try row.bind(revision, at: 1)
            try row.bind(writtenAt, at: 2)
            if let expiresAt { try row.bind(expiresAt, at: 3) }
            try row.bind(checksum ^ before ^ after, at: 4)
            try row.bind(packed, at: 5)
            try row.bind(old.id, at: 6)
        }
        try insertTags(meta.tags, in: cache, id: old.id, revision)
        let size = Int64((meta.extendedData?.count ?? 0) - (old.meta.extendedData?.count ?? 0))
        outcome.difference += Totals(size: size)
        outcome.rows.append(.init(key: key, id: old.id, revision: revision))
    }

    /// Each write of an entry gives its tags the new revision.
    ///
    /// Rows of older revisions are ignored.
    private func insertTags(_ tags: [String], in cache: Int64, id: Int64, _ revision: Int64) throws(SQLiteError) {
        for tag in tags {
            try connection.run(.insertTag) { row throws(SQLiteError) in
                try row.bind(tag, at: 1)
                try row.bind(cache, at: 2)
                try row.bind(id, at: 3)
                try row.bind(revision, at: 4)
            }
        }
    }
}
