internal import LarderSQLite

/// The result of a verification.
package struct VerificationReport: Sendable {
    /// A sentence for each problem, and for the first hundred damaged entries.
    package internal(set) var problems: [String] = []
    /// The entries that were looked at.
    package internal(set) var entryCount = 0
    /// The entries that do not fit their checksum, or whose file is missing or damaged.
    package internal(set) var damagedCount = 0
    /// The result of a salvage; nil if the file was not replaced.
    package internal(set) var salvage: SalvageReport?
}

extension Store {
    /// Reads everything, and compares it with its checksums.
    ///
    /// A repair replaces a damaged file by one with all rows that can be read, and deletes the damaged entries.
    ///
    /// - Parameter progress: Called with the number of entries that were looked at.
    package func verify(
        repairing: Bool = false, progress: (Int) -> Void = { _ in }
    ) throws(StoreError) -> VerificationReport {
        if isReadOnly && repairing { throw .readOnly }
        if isClosed { throw .closed }
        var verification = try look(progress)
        guard repairing else { return verification.report }
        var report = verification.report
        if verification.isFileDamaged {
            report.salvage = try writer.repair()
            // The first look may have ended at the damage.
            let known = Set(verification.damaged.map(\.header.revision))
            verification = try look(progress)
            report.problems += verification.report.problems.filter { !report.problems.contains($0) }
            report.entryCount = max(report.entryCount, verification.report.entryCount)
            report.damagedCount += verification.damaged.count { !known.contains($0.header.revision) }
        }
        for damaged in verification.damaged {
            try writer.runBatch { try $0.removeDamaged(damaged.header, of: damaged.cache, .damaged) }
        }
        return report
    }

    private func look(_ progress: (Int) -> Void) throws(StoreError) -> Verification {
        try writer.retrying { () throws(StoreError) in
            var verification = Verification(files: files)
            // Between its steps a body can write, and a suspension waits for no closure of the program.
            try StoreError.translating {
                try verification.run(progress) { step in try writer.readAlone(step) }
            }
            return verification
        }
    }
}

private struct Verification {
    let files: ValueFiles?
    var report = VerificationReport()
    private(set) var isFileDamaged = false
    private(set) var damaged: [(header: EntryHeader, cache: CacheDeclaration)] = []

    init(files: ValueFiles?) { self.files = files }

    /// Looks at everything, and calls `progress` after each step.
    ///
    /// - Parameter reading: Runs a step with a connection.
    mutating func run(
        _ progress: (Int) -> Void, _ reading: ((inout Connection) throws -> Void) throws -> Void
    ) throws {
        do {
            try look(progress, reading)
        } catch let error as SQLiteError where error.isCorruption {
            report.problems.append("The database is damaged: \(error.message).")
            isFileDamaged = true
        }
    }

    private mutating func look(
        _ progress: (Int) -> Void, _ reading: ((inout Connection) throws -> Void) throws -> Void
    ) throws {
        var (problems, caches) = ([String](), [Int64: Incarnation]())
        try reading {
            problems = try $0.integrityProblems()
            caches = try $0.liveIncarnations().byID
        }
        report.problems += problems.map { "The database is damaged: \($0)." }
        isFileDamaged = !problems.isEmpty
        var next: Int64? = .min
        while let first = next {
            var (rows, count) = ([(StoredRow, Incarnation)](), 0)
            try reading { (rows, count, next) = try Self.rows(from: first, of: caches, &$0) }
            report.entryCount += count
            progress(report.entryCount)
            // A suspension waits for a step, so a step is short. A connection for each row would cost more than the row.
            for start in stride(from: 0, to: rows.count, by: 16) {
                try reading { connection in
                    for (row, cache) in rows[start..<min(start + 16, rows.count)] {
                        try check(row, cache.cache, &connection)
                    }
                }
            }
        }
    }

    /// Returns the rows from an id on that have to be looked at closer, the number of all, and the id behind them.
    private static func rows(
        from first: Int64, of caches: [Int64: Incarnation], _ connection: inout Connection
    ) throws(SQLiteError) -> (rows: [(StoredRow, Incarnation)], count: Int, next: Int64?) {
        var (rows, count, next): ([(StoredRow, Incarnation)], Int, Int64?) = ([], 0, nil)
        try connection.with(.verifiedRows) { row throws(SQLiteError) in
            try row.bind(first, at: 1)
            while try row.step() {
                let id = row.int64(0)
                guard id >= next ?? first else { throw SQLiteError.damagedOrder }
                next = id == .max ? nil : id + 1
                guard let cache = caches[row.int64(10)] else { continue }
                count += 1
                let stored = row.storedRow(row.key(9), in: cache)
                if stored.header.file != nil || !stored.isSound { rows.append((stored, cache)) }
            }
        }
        return (rows, count, next)
    }

    private mutating func check(
        _ row: StoredRow, _ cache: CacheDeclaration, _ connection: inout Connection
    ) throws {
        let isWhole = try files.map { try $0.complete(row) != nil } ?? row.isSound
        // A file may have been displaced since its row was read.
        if try isWhole || connection.header(row.header.id)?.header.revision != row.header.revision { return }
        report.damagedCount += 1
        damaged.append((row.header, cache))
        guard report.damagedCount <= 100 else { return }
        let reason =
            row.header.file.map { "its file \"\($0)\" is missing or damaged" } ?? "it does not fit its checksum"
        report.problems.append(
            "The entry of \(row.header.key) in the cache \"\(cache.name)\" cannot be read: \(reason).")
    }
}
