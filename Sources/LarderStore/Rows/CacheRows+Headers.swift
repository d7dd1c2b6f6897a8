internal import LarderSQLite

/// Headers of several entries, which are read at one moment and without the payloads.
extension CacheRows {
    /// Returns the headers of the entries that have a tag, in no particular order.
    package func headers(tagged tag: String) throws(StoreError) -> [EntryHeader] {
        var found: [EntryHeader] = []
        try forEachHeader(tagged: tag) { found.append($0) }
        return found
    }

    /// Returns the number of the entries that have a tag and have not expired when they are read.
    package func count(tagged tag: String, at now: () -> Int64) throws(StoreError) -> Int {
        var ends: [Int64] = []
        try forEachHeader(tagged: tag) { ends.append($0.end) }
        // The clock may be the program's, and may use the store.
        let now = now()
        return ends.count { $0 >= now }
    }

    private func forEachHeader(tagged tag: String, _ body: (EntryHeader) -> Void) throws(StoreError) {
        try read(.many) { connection, cache throws(SQLiteError) in
            let ids = try connection.list(.taggedRows, text: tag, cache.id) { $0.int64(0) }
            try connection.forEachHeader(ids, in: cache, store.accesses, body)
        }
    }

    /// Returns the headers of keys in their order, without those of keys that have no row.
    package func headers(_ keys: [StoredKey]) throws(StoreError) -> [EntryHeader] {
        let found = try read(keys.count > Self.pageLimit ? .many : .page) { connection, cache throws(SQLiteError) in
            var found: [EntryHeader] = []
            for key in keys {
                guard var header = try connection.find(key, in: cache, store.accesses)?.header else { continue }
                try connection.addAccess(to: &header, store.accesses, always: true)
                found.append(header)
            }
            return found
        }
        return found ?? []
    }

    /// Returns the headers of the entries at places of a list that are still there.
    package func headers(_ list: RowList, _ places: Range<Int>) throws(StoreError) -> [EntryHeader] {
        try read(.page) { connection, cache throws(SQLiteError) in
            try connection.headers(list, places, in: cache, store.accesses)
        } ?? []
    }

    /// Returns the tags of the entries that have not expired when they are read, with the number of entries of each.
    package func tags(at now: () -> Int64) throws(StoreError) -> [String: Int] {
        let found = try read(.many) { connection, cache throws(SQLiteError) in
            let pairs = try connection.list(.tagsOfCache, cache.id) { (tag: $0.text(0), id: $0.int64(1)) }
            var ends: [Int64: Int64] = [:]
            try connection.forEachHeader(Set(pairs.map(\.id)), in: cache, store.accesses) { ends[$0.id] = $0.end }
            return (pairs, ends)
        }
        guard let (pairs, ends) = found else { return [:] }
        // The clock may be the program's, and may use the store.
        let now = now()
        return pairs.reduce(into: [:]) { if let end = ends[$1.id], end >= now { $0[$1.tag, default: 0] += 1 } }
    }
}

extension Connection {
    /// Calls a closure with the headers of those rows of a cache that are there.
    mutating func forEachHeader(
        _ ids: some Sequence<Int64>, in cache: Incarnation, _ accesses: AccessBook, withAccess: Bool = false,
        _ body: (EntryHeader) -> Void
    ) throws(SQLiteError) {
        for id in ids {
            let header = try with(.listedHeader) { row throws(SQLiteError) in
                try row.bind(id, at: 1)
                try row.bind(cache.id, at: 2)
                return try row.step() ? row.header(row.key(8), by: cache.rule) : nil
            }
            guard var header else { continue }
            try addAccess(to: &header, accesses, always: withAccess)
            body(header)
        }
    }
}
