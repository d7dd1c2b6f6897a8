internal import LarderSQLite

extension WriterState {
    /// Returns the live generation of a declaration; nil if the handle is superseded.
    func generation(of declaration: CacheDeclaration) -> Generation? {
        guard let generation = generations[declaration.name], declaration.fits(generation) else { return nil }
        return generation
    }

    /// Opens a cache: under another version or codec its rows are retired.
    package func open(_ declaration: CacheDeclaration, at now: Int64) throws(StoreError) {
        try request { try openGeneration(declaration, at: now) }
    }

    private func openGeneration(_ declaration: CacheDeclaration, at now: Int64) throws {
        switchesGeneration = true
        let rule = declaration.ageRule.stored
        if let generation = generation(of: declaration) {
            try connection.run(.updateGeneration) { statement throws(SQLiteError) in
                try statement.bind(generation.id, at: 1)
                try statement.bind(rule.kind, at: 2)
                try statement.bind(rule.milliseconds, at: 3)
                try statement.bind(now, at: 4)
            }
            generations[declaration.name]?.cache = declaration
            return
        }
        if let old = generations[declaration.name] { try retire(old) }
        let generation = Generation(id: newID(), cache: declaration)
        try connection.run(.insertGeneration) { statement throws(SQLiteError) in
            try statement.bind(generation.id, at: 1)
            try statement.bind(declaration.name, at: 2)
            try statement.bind(declaration.version, at: 3)
            try statement.bind(declaration.codec, at: 4)
            try statement.bind(rule.kind, at: 5)
            try statement.bind(rule.milliseconds, at: 6)
            try statement.bind(now, at: 7)
        }
        add(generation)
    }

    /// Switches to another generation under the same version.
    func clear(_ generation: Generation) throws(SQLiteError) -> Generation {
        switchesGeneration = true
        let next = Generation(id: newID(), cache: generation.cache)
        try retire(generation)
        try connection.run(.copyGeneration) { statement throws(SQLiteError) in
            try statement.bind(generation.id, at: 1)
            try statement.bind(next.id, at: 2)
        }
        add(next)
        return next
    }

    private func add(_ generation: Generation) {
        generations[generation.cache.name] = generation
        totals[generation.id] = Totals()
    }

    private func retire(_ generation: Generation) throws(SQLiteError) {
        try connection.run(.retireGeneration) { statement throws(SQLiteError) in
            try statement.bind(generation.id, at: 1)
        }
        generations[generation.cache.name] = nil
        totals[generation.id] = nil
    }

    /// Deletes rows of retired generations, and the generations that have none left.
    ///
    /// It goes through the table in the order of ids, 10,000 at a time: neighbours are on one page.
    ///
    /// - Returns: The number of deleted rows, at most `limit`, and whether no retired generation is left.
    package func reclaim(atMost limit: Int) throws(StoreError) -> (deleted: Int, isDone: Bool) {
        try request { try reclaimRows(atMost: limit) }
    }

    private func reclaimRows(atMost limit: Int) throws -> (deleted: Int, isDone: Bool) {
        let retired = try number(.retiredGeneration)
        guard let retired else { return (0, true) }
        if reclaimCursor.generation != retired { reclaimCursor = (retired, .min) }
        var deleted = 0
        for _ in 0..<10 where deleted < limit {
            // Ids without a row are skipped, however many.
            guard let first = try number(.nextID, reclaimCursor.id) else {
                try connection.run(.deleteGeneration) { statement throws(SQLiteError) in
                    try statement.bind(retired, at: 1)
                }
                break
            }
            let (sum, isPastEnd) = first.addingReportingOverflow(9_999)
            let last = isPastEnd ? .max : sum
            for sql in [SQL.deleteRetiredUses, .deleteRetiredRows] {
                try connection.run(sql) { statement throws(SQLiteError) in
                    try statement.bind(retired, at: 1)
                    try statement.bind(first, at: 2)
                    try statement.bind(last, at: 3)
                    try statement.bind(Int64(limit - deleted), at: 4)
                }
            }
            deleted += connection.changes
            reclaimCursor.id = deleted < limit ? last &+ 1 : first
            if isPastEnd && deleted < limit { break }
        }
        return (deleted, false)
    }

    /// Returns the first number of a statement with at most one parameter; nil for no row or NULL.
    private func number(_ sql: SQL, _ parameter: Int64? = nil) throws(SQLiteError) -> Int64? {
        try connection.with(sql) { row throws(SQLiteError) in
            if let parameter { try row.bind(parameter, at: 1) }
            guard try row.step(), row.type(of: 0) == .integer else { return nil }
            return row.int64(0)
        }
    }

    /// Returns a random id above 0, of four bytes: it is in every row and in its index.
    private func newID() -> Int64 { max(1, newRevision() & 0x7FFF_FFFF) }
}
