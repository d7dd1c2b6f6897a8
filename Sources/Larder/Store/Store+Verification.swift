internal import LarderSQLite

/// What a check of a store has found.
package struct VerificationFindings: Sendable {
    package var problems: [String] = []
    package var rows = 0
    package var repaired = 0
}

extension Store {
    private static let bytesPerCheck = 1 << 20

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
                try c.checkedRows(after: after, bytes: Self.bytesPerCheck)
            }
            // Where ids do not rise, a page that leads to others is damaged, and its rows would come again and again.
            guard let end = rows.last?.row.facts.id, end > last else { break }
            last = end
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
        let facts = row.row.facts
        guard let file = facts.file else {
            if row.row.payload == nil { return "\(name) has neither a payload nor a file." }
            return row.row.isSound ? nil : "\(name) does not fit its checksum."
        }
        guard let blobs = try present().blobs else { return nil }
        let reading: BlobReading
        do throws(SystemError) {
            let size = facts.size - Int64(row.row.extended?.count ?? 0)
            reading = try blobs.read(file, size: size, checksum: row.row.payloadChecksum)
        } catch {
            throw CacheError("cannot read the file \(file)", error)
        }
        if case .bytes = reading { return nil }
        // It may have been written meanwhile.
        let again = try read { (c, _) throws(SQLiteError) in try c.checkedRows(after: facts.id - 1, bytes: 1).first }
        guard let again = again?.row.facts, again.id == facts.id, again.file == file, again.revision == facts.revision
        else {
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
                try ledger.remove([RowVictim(row.key, row.row.facts)], .call).count
            }
            return
        }
        let facts = row.row.facts
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
