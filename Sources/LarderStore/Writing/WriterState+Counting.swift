internal import LarderSQLite

extension WriterState {
    /// Returns the count of a cache outside a transaction; nil if the cache is superseded.
    func count(of cache: CacheDeclaration) throws(SQLiteError) -> RowCount? {
        try connection.beginReading()
        defer { connection.abandonWriting() }
        try lookUpIncarnations()
        return try incarnation(of: cache).map { cache throws(SQLiteError) in try count(of: cache) }
    }

    /// Returns what is known of an incarnation, and counts its rows if nothing is.
    func count(of cache: Incarnation) throws(SQLiteError) -> RowCount {
        if let known = counts[cache.id] { return known }
        let counted = try connection.count(of: cache, accesses)
        counts[cache.id] = counted
        return counted
    }

    /// Changes what is known of an incarnation, if anything is.
    ///
    /// A change in place would allocate memory.
    func changeCount(of id: Int64, _ change: (inout RowCount) -> Void) {
        guard var count = counts[id] else { return }
        change(&count)
        counts[id] = count
    }
}
