package import Foundation
internal import LarderSQLite
internal import Synchronization

extension RowLedger {
    /// The row with its payload in hand, whether that is in it or in a file.
    ///
    /// A file that does not fit its row counts as damaged only if the row, read again, still names it: else the row was
    /// written meanwhile, and is read anew.
    ///
    /// - Returns: A row without a payload if that is damaged or gone, nil if the row is gone.
    package func filled(_ key: StoredKey, _ row: EntryRow) throws(CacheError) -> EntryRow? {
        var row = row
        while !row.isInHand, let reading = try read(row, of: key) {
            if case .bytes(let payload) = reading { return row.with(payload) }
            guard let again = try readMoment({ (c, id) throws(SQLiteError) in try c.row(id, key) }) ?? nil else {
                return nil
            }
            if again.facts.file == row.facts.file, again.facts.revision == row.facts.revision { return row.with(nil) }
            row = again
        }
        return row
    }

    /// The same with the facts of the row that it has become, as this process knows them.
    package func filled(
        _ key: StoredKey, _ row: EntryRow, _ facts: EntryFacts, _ terms: AgeTerms
    ) throws(CacheError) -> (row: EntryRow, facts: EntryFacts)? {
        guard let full = try filled(key, row) else { return nil }
        if full.facts.revision == facts.revision { return (full, facts) }
        return seen(key, full.facts, now: terms.now()).map { (full, $0) }
    }

    /// What is in the file that a row names; nil where no file can be.
    func read(_ row: EntryRow, of key: StoredKey? = nil) throws(CacheError) -> BlobReading? {
        guard let file = row.facts.file else { return nil }
        let size = row.facts.size - Int64(row.extended?.count ?? 0)
        return try read(file, of: key, size: size, checksum: row.payloadChecksum)
    }

    /// What is in a file that the row of a key names; nil where no file can be.
    func read(
        _ file: String, of key: StoredKey?, size: Int64, checksum: Int64
    ) throws(CacheError) -> BlobReading? {
        guard let blobs = try store.present().blobs else { return nil }
        do throws(SystemError) {
            return try blobs.read(file, size: size, checksum: checksum)
        } catch {
            let owner = key.map { "key \($0)" } ?? "a value"
            throw CacheError("cannot read the file of \(owner) in sub-cache \"\(name)\"", error)
        }
    }

    /// The row that was just removed with its payload in hand: its file is nobody else's any more.
    package func filledLast(_ row: EntryRow) throws(CacheError) -> EntryRow {
        guard !row.isInHand, let reading = try read(row) else { return row }
        guard case .bytes(let payload) = reading else { return row.with(nil) }
        return row.with(payload)
    }

    /// A row that a reader may have, with its payload in hand.
    package func filled(_ key: StoredKey, _ found: FoundRow, _ terms: AgeTerms) throws(CacheError) -> FoundRow? {
        if found.row.isInHand { return found }
        guard let row = try filled(key, found.row) else { return judged(key, nil, terms) }
        if row.facts.revision != found.row.facts.revision { return judged(key, row, terms) }
        return FoundRow(row: row, facts: found.facts, moment: found.moment)
    }

    /// Where the file of a live entry is, for somebody outside.
    ///
    /// - Parameters:
    ///   - accessedAt: When memory saw the key used last.
    ///   - gone: Called with the revision of a row whose file is not there.
    package func fileURL(
        _ key: StoredKey, _ terms: AgeTerms, accessedAt: Int64?, gone: (Int64) -> Void
    ) throws(CacheError) -> (url: URL, facts: EntryFacts)? {
        while true {
            guard let facts = try facts(key, terms, accessedAt: accessedAt),
                !facts.isExpired(terms.rule, now: terms.now()), let file = facts.file,
                let blobs = try store.present().blobs
            else { return nil }
            if store.isReadOnly { return blobs.path(of: file).map { (URL(fileURLWithPath: $0), facts) } }
            do throws(SystemError) {
                if let path = try blobs.handOut(file) { return (URL(fileURLWithPath: path), facts) }
            } catch {
                throw CacheError("cannot hand out the file of key \(key) in sub-cache \"\(name)\"", error)
            }
            // Given up in between, or gone: the row tells which.
            let again = try self.facts(key, terms, accessedAt: accessedAt)
            if let again, again.file == file {
                gone(again.revision)
                return nil
            }
        }
    }
}

extension Store {
    /// Gives up files that no row names any more, after the commit.
    func giveUp(_ names: [String]) {
        guard !names.isEmpty else { return }
        do {
            guard let blobs = try present().blobs else { return }
            for name in names { try blobs.giveUp(name) }
        } catch {
            // A later sweep finds them.
        }
    }
}
