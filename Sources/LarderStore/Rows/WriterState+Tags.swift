internal import LarderSQLite

/// Tags: a row for each tag of an entry, with the revision of the entry.
///
/// A row whose revision is not the entry's is ignored, and deleted with the entry or its generation.
extension WriterState {
    func insertTags(_ tags: [String], in cache: Int64, id: Int64, _ revision: Int64) throws(SQLiteError) {
        for tag in tags {
            try connection.run(.insertTag) { row throws(SQLiteError) in
                try row.bind(tag, at: 1)
                for (index, number) in [cache, id, revision].enumerated() { try row.bind(number, at: Int32(index + 2)) }
            }
        }
    }

    func deleteTags(_ tags: [String], in cache: Int64, id: Int64) throws(SQLiteError) {
        for tag in tags {
            try connection.run(.deleteTag) { row throws(SQLiteError) in
                try row.bind(tag, at: 1)
                try row.bind(cache, at: 2)
                try row.bind(id, at: 3)
            }
        }
    }

    /// Removes the entries that have a tag, of a cache or of all, and returns their number.
    func removeTagged(_ tag: String, in declaration: CacheDeclaration?) throws -> Int {
        if let declaration, generation(of: declaration) == nil { throw StoreError.superseded }
        var count = 0
        for cache in generations.values where declaration == nil || cache.cache.name == declaration?.name {
            let ids = try connection.with(.taggedRows) { row throws(SQLiteError) in
                try row.bind(tag, at: 1)
                try row.bind(cache.id, at: 2)
                var ids: [Int64] = []
                while try row.step() { ids.append(row.int64(0)) }
                return ids
            }
            for id in ids {
                if let (facts, _) = try connection.facts(id) { try remove(facts, from: cache.id, .removed) }
            }
            count += ids.count
        }
        return count
    }
}
