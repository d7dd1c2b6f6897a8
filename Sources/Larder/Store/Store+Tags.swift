internal import LarderSQLite

/// Removing entries by a tag.
extension RowLedger {
    /// The rows of a tag, of entries that have expired too.
    func tagged(_ tag: String) throws(CacheError) -> [ListedFacts] {
        try readMoment { (c, id) throws(SQLiteError) in try c.tagged(tag, id) } ?? []
    }

    /// A request that removes rows unless they were written since.
    fileprivate func removal(of victims: [RowVictim], scope: WriteScope? = nil) -> WriteRequest {
        WriteRequest(
            .evict(victims, .call), to: self, scope: scope, front?.removal(of: victims, .call, isLate: false))
    }

    /// Removes every entry that has a tag, in one step.
    ///
    /// - Returns: The number of removed entries.
    func removeAll(tagged tag: String) throws(CacheError) -> Int {
        let request = removal(of: try tagged(tag).map { RowVictim($0.key, $0.facts) })
        try run(request)
        return request.outcome.indices.count
    }
}

extension Store {
    /// Removes every entry of every cache that has a tag, in one step.
    ///
    /// - Returns: The number of removed entries.
    package func removeAll(tagged tag: String) throws(CacheError) -> Int {
        let found = try read { (c, _) throws(SQLiteError) -> [(generation: Int64, rows: [ListedFacts])] in
            var found: [(Int64, [ListedFacts])] = []
            for generation in try c.generations(tagged: tag) {
                found.append((generation, try c.tagged(tag, generation)))
            }
            return found
        }
        // Made before anything is held: keys are the user's code.
        var requests: [WriteRequest] = []
        var unused: [ListedFacts] = []
        for (generation, rows) in found {
            if let ledger = live.all.first(where: { $0.generation == generation }) {
                requests.append(ledger.removal(of: rows.map { RowVictim($0.key, $0.facts) }, scope: .unheld))
            } else {
                unused += rows
            }
        }
        let (cachesInUse, otherRows) = (requests, unused)
        let (count, files) = try write(BlockTraits(isAlone: true), scope: .holding(.everything)) {
            (connection, context) throws(SQLiteError) -> (Int, [String]) in
            for request in cachesInUse {
                do throws(WriteFailure) {
                    try request.perform(&connection, context)
                } catch {
                    // A cache that was purged in the meantime has no entry with the tag any more.
                    if case .database(let error) = error { throw error }
                }
            }
            var (count, files): (Int, [String]) = (0, [])
            for row in otherRows {
                try connection.deleteRow(row.facts.id, revision: row.facts.revision)
                guard connection.changes > 0 else { continue }
                count += 1
                if let file = row.facts.file { files.append(file) }
            }
            return (count, files)
        } apply: { _, _ in
            for request in cachesInUse { request.apply() }
        }
        giveUp(files)
        for request in requests { request.ledger?.settle(request) }
        return requests.reduce(count) { $0 + ($1.isGood ? $1.outcome.indices.count : 0) }
    }

    /// How many notes of tags are deleted in one transaction.
    private static let tagsPerSlice = 1000

    /// Deletes the notes of tags that no entry has any more.
    func deleteStaleTags() throws(CacheError) {
        while try write(
            BlockTraits(), { (c, _) throws(SQLiteError) in try c.deleteStaleTags(atMost: Self.tagsPerSlice) }) > 0
        {}
    }
}
