internal import LarderSQLite

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

    /// Removes the entries that have a tag, of a cache or of all, and returns their number.
    ///
    /// Loads that run do not store results with the tag.
    func removeTagged(_ tag: String, in declaration: CacheDeclaration?) throws -> Int {
        if let declaration, incarnation(of: declaration) == nil { throw StoreError.superseded }
        var count = 0
        let caches = incarnations.values.filter {
            declaration == nil || $0.cache.identity.name == declaration?.identity.name
        }
        // A load that begins in the meantime may still be given the tag by what was there before the removal.
        let tiers = caches.flatMap { self.tiers[$0.cache.identity] }
        for tier in tiers { tier.overtakeLoads(tagged: tag) }
        afterCommit { for tier in tiers { tier.overtakeLoads(tagged: tag) } }
        for cache in caches {
            let ids = try connection.list(.taggedRows, text: tag, cache.id) { $0.int64(0) }
            for id in ids {
                if let (header, _) = try connection.header(id) { try remove(header, from: cache.id, .removed) }
            }
            count += ids.count
        }
        return count
    }

    /// Removes the entries whose keys are texts that begin so, and returns their number.
    ///
    /// Loads that run for such keys do not store their results.
    func removeAll(prefix: String, in declaration: CacheDeclaration, pageLimit: Int) throws -> Int {
        guard let cache = incarnation(of: declaration) else { throw StoreError.superseded }
        let tiers = tiers[declaration.identity]
        // No load stores a result before the writer is let go.
        afterCommit { for tier in tiers { tier.overtakeLoads(prefix: prefix) } }
        var (count, last) = (0, PagePosition?.none)
        repeat {
            var found: [EntryHeader] = []
            last = try connection.page(
                SQL.headerPages, keyColumn: 8, KeyRange(prefix: prefix), after: last, pageLimit, in: cache
            ) {
                found.append($1.header($0, by: cache.rule))
                return 0
            }
            for header in found { try remove(header, from: cache.id, .removed) }
            count += found.count
        } while last != nil
        return count
    }
}
