internal import Foundation
package import LarderSQLite
internal import Synchronization

/// Something of a reading that may hold a row.
package protocol RowHolder: Sendable {
    var heldRow: EntryRow? { get set }
}

extension Optional: RowHolder where Wrapped == EntryRow {
    package var heldRow: EntryRow? {
        get { self }
        set { self = newValue }
    }
}

extension ListedRow: RowHolder {
    package var heldRow: EntryRow? {
        get { row }
        set { if let newValue { self = ListedRow(key: key, row: newValue) } }
    }
}

/// The files that were read for one reading of rows.
private struct ReadFiles: Sendable {
    var payloads: [String: Data] = [:]
    /// Those that did not fit their rows, or were not there.
    var missed: Set<String> = []
}

/// Rows that are read together with their files, so that all of it is of one moment.
///
/// Files are read after their rows, and a write may give one up in between. Then all rows are read anew; the files that
/// they still name are not, since a name never stands for two files.
extension RowLedger {
    /// How often rows are read beside writers who give up their files, before the writers have to wait.
    package static let mostReadings = 16

    /// What `read` gives, with the files read of those rows that are not over by `terms`.
    ///
    /// A file that a row still names when it is read anew is damaged, or was deleted by somebody else.
    ///
    /// - Parameter first: What `read` gave just now; nil if there is nothing to read from.
    package func together<Row: RowHolder>(
        _ first: [Row]?, _ terms: AgeTerms?,
        _ read: @escaping @Sendable (inout Connection, Int64) throws(SQLiteError) -> [Row]
    ) throws(CacheError) -> [Row]? {
        guard var rows = first, rows.contains(where: { $0.heldRow?.isInHand == false }) else { return first }
        // Here: the clock is the user's code, and the last reading is made in a transaction.
        let limit = terms.map { (rule: $0.rule, now: $0.now()) }
        var files = ReadFiles()
        var readings = 1
        while true {
            if let whole = try whole(rows, &files, limit) { return whole }
            // Inside a transaction its own thread holds the queue; then nobody else writes either.
            let isInTransaction = store.inside.containCurrent && store.queue.isHeldWhole
            if readings >= Self.mostReadings, !store.isReadOnly, !isInTransaction {
                return try inTurn(limit, files, read)
            }
            guard let again = try readMoment(read) else { return nil }
            rows = again
            readings += 1
        }
    }

    /// The rows with what their files hold; nil if one did not fit its row, which may have been written since.
    private func whole<Row: RowHolder>(
        _ rows: [Row], _ files: inout ReadFiles, _ limit: (rule: AgeRule, now: Int64)?
    ) throws(CacheError) -> [Row]? {
        guard try store.present().blobs != nil else { return rows }
        let unreadable = Set(state.withLock { $0.unreadable.values.map(\.revision) })
        var (rows, isWhole) = (rows, true)
        for index in rows.indices {
            guard let row = rows[index].heldRow, !row.isInHand, let name = row.facts.file,
                !unreadable.contains(row.facts.revision)
            else { continue }
            if let limit, !row.facts.isSliding(else: limit.rule), row.facts.isExpired(limit.rule, now: limit.now) {
                continue
            }
            if files.missed.contains(name) {
                rows[index].heldRow = row.with(nil)
            } else if let payload = files.payloads[name] {
                rows[index].heldRow = row.with(payload)
            } else if case .bytes(let payload) = try read(row) {
                files.payloads[name] = payload
                rows[index].heldRow = row.with(payload)
            } else {
                files.missed.insert(name)
                isWhole = false
            }
        }
        return isWhole ? rows : nil
    }

    /// The same in a turn among the writes: what a row names then, nobody gives up.
    private func inTurn<Row: RowHolder>(
        _ limit: (rule: AgeRule, now: Int64)?, _ known: ReadFiles,
        _ read: @escaping @Sendable (inout Connection, Int64) throws(SQLiteError) -> [Row]
    ) throws(CacheError) -> [Row]? {
        do throws(CacheError) {
            let outcome = try write(BlockTraits(isCompound: false, isAlone: true)) {
                (connection, place) throws(SQLiteError) -> Result<[Row], CacheError> in
                let rows = try read(&connection, place.generation)
                // A file that cannot be read is no failure of the transaction.
                return Result { () throws(CacheError) -> [Row] in
                    var files = known
                    if let whole = try self.whole(rows, &files, limit) { return whole }
                    return try self.whole(rows, &files, limit) ?? rows
                }
            }
            return try outcome.get()
        } catch  where error.code == .superseded {
            return nil
        }
    }
}
