internal import LarderSQLite

/// The note of a cache that names the rows which memory has used last.
package enum RecentNote {
    /// The number of the note among those of a cache.
    static let number: Int64 = -1

    private static let format: UInt8 = 1

    /// The form of a list of ids, the least recent first: a byte for the format, then 8 bytes for each, the least significant first.
    static func packed(_ ids: [Int64]) -> [UInt8] {
        ids.reduce(into: [format]) { bytes, id in
            withUnsafeBytes(of: id.littleEndian) { bytes.append(contentsOf: $0) }
        }
    }

    /// The ids in a form; none if it is damaged, or of another format.
    static func ids(in packed: [UInt8]) -> [Int64] {
        guard packed.first == format, packed.count % 8 == 1 else { return [] }
        return stride(from: 1, to: packed.count, by: 8).map { place in
            Int64(bitPattern: packed[place..<place + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) })
        }
    }
}

extension Connection {
    /// Returns the ids of the rows that memory had used last; none if there is no such note.
    mutating func recentIDs(of cache: Incarnation) throws(SQLiteError) -> [Int64] {
        let notes = try list(.note, text: cache.cache.name, RecentNote.number) { $0.bytes(0) }
        return RecentNote.ids(in: notes.first ?? [])
    }

    /// Returns the ids of the rows that were made of some of another incarnation.
    mutating func ids(
        of ids: [Int64], from old: Incarnation, in cache: Incarnation, _ accesses: AccessBook
    ) throws(SQLiteError) -> [Int64] {
        var found: [Int64] = []
        for id in ids {
            guard let row = try header(id), row.incarnation == old.id else { continue }
            if let header = try find(row.header.key, in: cache, accesses)?.header { found.append(header.id) }
        }
        return found
    }
}

extension CacheRows {
    /// Returns the rows that memory had used last, the least recent first, and their ids in the note.
    package func recentRows() throws(StoreError) -> (rows: [StoredRow], noted: [Int64]) {
        var noted: [Int64] = []
        let rows = try rowsOfOneMoment { connection, cache throws(SQLiteError) in
            noted = try connection.recentIDs(of: cache)
            var rows: [StoredRow] = []
            for id in noted {
                if let row = try connection.listedRow(id, in: cache, store.accesses) { rows.append(row) }
            }
            return rows
        }
        return (rows, noted)
    }

    /// Notes the rows that memory has used last, without a wait: the memory is released.
    package func noteRecent(_ ids: [Int64]) {
        _ = store.writer.enqueue { [declaration] state in
            if state.incarnation(of: declaration) == nil { return }
            try state.setNote(RecentNote.number, RecentNote.packed(ids), of: declaration.name)
        }
    }
}
