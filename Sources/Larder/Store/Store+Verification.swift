internal import LarderSQLite

/// What a check of a store has found.
package struct VerificationFindings: Sendable {
    package var problems: [String] = []
    package var rows = 0
    package var repaired = 0
    /// What became of the database, if it was replaced.
    package var salvaged: SalvagedStore?
}

extension Store {
    private static let bytesPerCheck = 1 << 20

    /// Reads everything, and says what is wrong.
    ///
    /// Damage is a finding, and no error; where nothing is to be repaired, it changes nothing either.
    ///
    /// - Parameter isRepairing: Whether a damaged database is replaced by what can be read of it, and damaged entries are
    ///   deleted.
    package func verify(
        isRepairing: Bool, progress: (CacheProgress) -> Void
    ) throws(CacheError) -> VerificationFindings {
        var findings = VerificationFindings()
        var total = try checkDatabase(&findings)
        if isRepairing, !findings.problems.isEmpty, try rebuild(&findings) {
            total = try checkDatabase(&findings)
        }
        do throws(CheckFailure) {
            try checkRows(&findings, total, isRepairing, progress)
        } catch {
            guard case .damage(let damage) = error else { throw error.cause }
            findings.problems.append("The database: \(damage.message).")
            // Behind a repair there is nothing to be found; what is, is for the next call.
            if isRepairing, findings.salvaged == nil, try rebuild(&findings) {
                total = try checkDatabase(&findings)
                do throws(CheckFailure) {
                    try checkRows(&findings, total, isRepairing, progress)
                } catch {
                    if case .other(let error) = error { throw error }
                }
            }
        }
        if findings.rows == 0 { progress(CacheProgress(completed: 0, total: 0)) }
        return findings
    }

    /// Why a check came to no end.
    private enum CheckFailure: Error {
        case damage(SQLiteError)
        case other(CacheError)

        var cause: CacheError {
            switch self {
            case .damage(let error): CacheError("cannot check", error)
            case .other(let error): error
            }
        }
    }

    /// Runs `body` on a reader; unlike with other reads, damage is reported and nothing is done about it.
    private func inspect<R: Sendable>(
        _ body: @Sendable (inout Connection) throws(SQLiteError) -> R
    ) throws(CheckFailure) -> R {
        do {
            let database = try current()
            do {
                return try database.read(body)
            } catch  where error.isCorruption && database.isInPlace {
                throw CheckFailure.damage(error)
            } catch {
                return try read { (connection, _) throws(SQLiteError) in try body(&connection) }
            }
        } catch let failure as CheckFailure {
            throw failure
        } catch let error as CacheError {
            throw .other(error)
        } catch {
            throw .other(CacheError(.storageUnavailable, "\(error)"))
        }
    }

    /// Has SQLite check the database, and looks at the table of caches; how many rows there are.
    private func checkDatabase(_ findings: inout VerificationFindings) throws(CacheError) -> Int {
        do {
            let (total, problems) = try inspect { (c) throws(SQLiteError) in
                // The checksums of the table of caches are checked with each look at it.
                _ = try c.generations()
                return (try c.countRows(), try c.integrityProblems())
            }
            findings.problems += problems.map { "The database: \($0)." }
            return total
        } catch {
            guard case .damage(let damage) = error else { throw error.cause }
            findings.problems.append("The database: \(damage.message).")
            return 0
        }
    }

    private func checkRows(
        _ findings: inout VerificationFindings, _ total: Int, _ isRepairing: Bool, _ progress: (CacheProgress) -> Void
    ) throws(CheckFailure) {
        var last = Int64.min
        while true {
            let after = last
            let rows = try inspect { (c) throws(SQLiteError) in
                try c.checkedRows(after: after, bytes: Self.bytesPerCheck)
            }
            // Where ids do not rise, a page that leads to others is damaged, and its rows would come again and again.
            guard let end = rows.last?.row.facts.id, end > last else { break }
            last = end
            do {
                for row in rows {
                    guard let problem = try problem(of: row) else { continue }
                    findings.problems.append(problem)
                    if isRepairing {
                        try delete(row)
                        findings.repaired += 1
                    }
                }
            } catch {
                throw .other(error)
            }
            findings.rows += rows.count
            progress(CacheProgress(completed: min(findings.rows, total), total: max(total, findings.rows)))
        }
    }

    /// Replaces the database by what can be read of it; false in memory, where there is no other copy to read.
    private func rebuild(_ findings: inout VerificationFindings) throws(CacheError) -> Bool {
        let database = try current()
        guard database.identity != nil else { return false }
        let damage = SQLiteError(code: .corrupt, message: findings.problems.first ?? "verified")
        findings.salvaged = try reopen(database, damage: damage, isCertain: true, isRepair: true)
        // Some of what was counted may have been there twice.
        for ledger in live.all { ledger.forgetTally() }
        return findings.salvaged != nil
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

    private func delete(_ row: CheckedRow) throws(CacheError) {
        if let ledger = live.all.first(where: { $0.generation == row.generation }) {
            _ = try unlessSuperseded { () throws(CacheError) in
                try ledger.remove([RowVictim(row.key, row.row.facts)], .call).count
            }
            return
        }
        let facts = row.row.facts
        try write(BlockTraits(isCompound: false)) { (connection, _) throws(SQLiteError) in
            try connection.deleteRow(facts.id, revision: facts.revision)
        }
        if let file = facts.file { giveUp([file]) }
    }
}
