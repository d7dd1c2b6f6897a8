internal import LarderSQLite

/// Where a write to a sub-cache finds itself.
@usableFromInline
package struct WritePlace: Sendable {
    /// The generation's id.
    package let generation: Int64
    /// The round in which what is written is true.
    package let round: UInt32
    let binding: GenerationBinding
    /// The rows that went because they could not be read.
    var dropped: [StoredKey] = []
    /// The files that no row names once this is committed.
    package internal(set) var givenUp: [String] = []
    /// Where large payloads go.
    let blobs: BlobFolder?
    /// Whether a write has to look what it writes over: rows may have files, or are counted.
    let looks: Bool
    /// How many more rows there are, and how many more bytes; nothing where it does not look.
    var added: (count: Int, size: Int64, written: Int64) = (0, 0, 0)
    /// Whether a row that was pinned is written over, and may go now.
    var mayUnpin = false
}

extension WritePlace {
    /// Notes what the row of a key takes, which is about to be written over or deleted.
    ///
    /// - Parameter isUnpinning: Whether a row that is not pinned comes in its place.
    mutating func noteOld(
        _ key: StoredKey, _ connection: inout Connection, isUnpinning: Bool = false
    ) throws(SQLiteError) {
        guard looks, let old = try connection.burden(generation, key) else { return }
        if old.isPinned, isUnpinning { mayUnpin = true }
        noteGone(old.file, old.size)
    }

    /// A row goes, and nothing names its file once the write is committed.
    mutating func noteGone(_ file: String?, _ size: Int64) {
        if let file { givenUp.append(file) }
        added.count -= 1
        added.size -= size
    }

    /// A row takes more or less than before.
    mutating func noteResized(by size: Int64) {
        added.size += size
        added.written += max(0, size)
    }

    /// Whether there is more than before.
    var isGrowth: Bool { added.count > 0 || added.size > 0 }

    /// A row comes.
    mutating func noteNew(_ size: Int) {
        added.count += 1
        added.size += Int64(size)
        added.written += Int64(size)
    }
}

/// What a write puts into a row, or into a file that the row names.
@usableFromInline
package struct WrittenContent: Sendable {
    @usableFromInline package var row: EntryContent
    @usableFromInline package var spilled: SpilledPayload?

    @usableFromInline
    package init(_ row: EntryContent, spilled: SpilledPayload? = nil) {
        self.row = row
        self.spilled = spilled
    }

    /// How many pages a row of it adds to the main file at most: its own, and those that trees of it are split into.
    var pages: Int { 12 + (spilled == nil ? row.size : row.extended?.count ?? 0) / 4000 }
}
