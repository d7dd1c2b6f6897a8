internal import LarderSQLite

/// What a check of a store has found.
package struct VerificationFindings: Sendable {
    package var problems: [String] = []
    package var rows = 0
    package var repaired = 0
}

extension Store {
    private static let rowsPerCheck = 500

    /// Reads everything, and says what is wrong.
    ///
    /// - Parameter isRepairing: Whether entries that are damaged are deleted.
    package func verify(
        isRepairing: Bool, progress: (CacheProgress) -> Void
    ) throws(CacheError) -> VerificationFindings {
        var findings = VerificationFindings()
        let (total, problems) = try read { (c, _) throws(SQLiteError) in
            (try c.countRows(), try c.integrityProblems())
        }
        findings.problems = problems.map { "The database: \($0)." }
        if isRepairing, !problems.isEmpty { try makeIndexesAnew() }
        var last = Int64.min
        while true {
            let after = last
            let rows = try read { (c, _) throws(SQLiteError) in
                try c.checkedRows(after: after, limit: Self.rowsPerCheck)
            }
            guard let end = rows.last else { break }
            last = end.facts.id
            for row in rows {
                guard let problem = try problem(of: row) else { continue }
                findings.problems.append(problem)
                if isRepairing {
                    try delete(row)
                    findings.repaired += 1
                }
            }
            findings.rows += rows.count
            progress(CacheProgress(completed: min(findings.rows, total), total: total))
        }
        if total == 0 { progress(CacheProgress(completed: 0, total: 0)) }
        return findings
    }

    /// What is wrong with a row, in a sentence.
    private func problem(of row: CheckedRow) throws(CacheError) -> String? {
        let name = "The entry of key \(row.key) in generation \(row.generation)"
        if !row.isOwned { return "\(name) belongs to no sub-cache." }
        if case .foreign = row.key { return "\(name) has a key that none is stored as." }
        guard let file = row.facts.file else {
            guard let size = row.payloadSize else { return "\(name) has neither a payload nor a file." }
            return size + row.extendedSize == row.facts.size
                ? nil : "\(name) has \(size + row.extendedSize) bytes and says \(row.facts.size)."
        }
        guard let blobs = try present().blobs else { return nil }
        let reading: BlobReading
        do throws(SystemError) {
            reading = try blobs.read(
                file, size: row.facts.size - row.extendedSize, checksum: row.facts.checksum)
        } catch {
            throw CacheError("cannot read the file \(file)", error)
        }
        if case .bytes = reading { return nil }
        // It may have been written meanwhile.
        let id = row.facts.id
        let again = try read { (c, _) throws(SQLiteError) in try c.checkedRows(after: id - 1, limit: 1).first }
        guard again?.facts.id == id, again?.facts.file == file, again?.facts.revision == row.facts.revision else {
            return nil
        }
        if case .missing = reading { return "\(name) names the file \(file), which is gone." }
        return "\(name) names the file \(file), which is damaged."
    }

    /// Makes the indexes anew, of which some of what is wrong may have been: the rows are what counts.
    private func makeIndexesAnew() throws(CacheError) {
        let ticket = WriteTicket<Void>(
            .unheld, isCompound: true, isAlone: true, adding: .max,
            perform: { (connection, _) throws(WriteFailure) in
                try connection.failing { (c) throws(SQLiteError) in try c.makeIndexesAnew() }
            })
        try queue.run(ticket, self)
        // Some of what was counted may have been there twice.
        for ledger in live.all { ledger.forgetTally() }
    }

    private func delete(_ row: CheckedRow) throws(CacheError) {
        if let ledger = live.all.first(where: { $0.generation == row.generation }) {
            _ = try unlessSuperseded { () throws(CacheError) in
                try ledger.remove([RowVictim(row.key, row.facts)], .call).count
            }
            return
        }
        let facts = row.facts
        let ticket = WriteTicket<Void>(
            .unheld,
            perform: { (connection, _) throws(WriteFailure) in
                try connection.failing { (c) throws(SQLiteError) in
                    try c.deleteRow(facts.id, revision: facts.revision)
                }
            })
        try queue.run(ticket, self)
        if let file = facts.file { giveUp([file]) }
    }
}
