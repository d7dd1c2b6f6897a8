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
            if let (header, _) = try connection.header(id) { try remove(header, from: cache, .removed) }
        }
        return found.count
    }

    /// Keeps loads that run from storing results with a tag, and returns the caches in which it may be.
    func overtakeLoads(tagged tag: String, in declaration: CacheDeclaration?) throws(StoreError) -> [Incarnation] {
        if let declaration, incarnation(of: declaration) == nil { throw StoreError.superseded }
        let caches = incarnations.values.filter {
            declaration == nil || $0.cache.identity.name == declaration?.identity.name
        }
        // A load that begins in the meantime may still be given the tag by what was there before the removal.
        let tiers = caches.flatMap { self.tiers[$0.cache.identity] }
        for tier in tiers { tier.overtakeLoads(tagged: tag) }
        afterCommit { for tier in tiers { tier.overtakeLoads(tagged: tag) } }
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
        let tiers = tiers[declaration.identity]
        // No load stores a result before the writer is let go.
        afterCommit { for tier in tiers { tier.overtakeLoads(prefix: prefix) } }
        return cache
    }

    /// Removes rows that were not written since they were listed, and returns their number.
    ///
    /// - Parameter range: What their keys are in.
    func remove(_ rows: some Sequence<ListedRow>, in range: KeyRange) throws(SQLiteError) -> Int {
        var count = 0
        for row in rows {
            guard let (header, incarnation) = try connection.header(row.id), incarnation == row.cache else { continue }
            // Another age or pin leaves the value.
            var revision = row.revision
            while revision != header.revision, let next = replacedRevisions[revision] { revision = next }
            if header.revision != revision { continue }
            if !range.contains(header.key) { throw SQLiteError.damagedIndex }
            try remove(header, from: incarnation, .removed)
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
