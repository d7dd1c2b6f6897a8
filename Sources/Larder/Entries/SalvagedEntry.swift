internal import Foundation
package import LarderSQLite

/// An entry as it is on its page, without a look at an index.
package struct SalvagedEntry: Sendable {
    /// The number of columns of the table of entries.
    package static let columnCount = 17

    package let id: Int64
    package let cache: Int64
    package let key: StoredKey
    package let revision: Int64

    /// The file of the payload, if it is not in the row; with its size and the checksum that it must have.
    package let file: (name: String, size: Int64, checksum: Int64)?

    /// Whether the row and the payload in it fit the checksum; with a payload in a file only the file tells.
    package let isSound: Bool

    let values: [RawValue]

    /// - Returns: Nil if the values are not those of an entry.
    package init?(_ record: RawRecord) {
        let values = record.values
        guard values.count == Self.columnCount, let id = record.rowID, let key = StoredKey(values[2]),
            let cache = values[1].number, let size = values[3].number, let writtenAt = values[4].number,
            let isPinned = values[8].number, let checksum = values[11].number
        else { return nil }
        self.id = id
        self.cache = cache
        self.key = key
        // Of these four nothing depends that cannot be done without.
        let accessedAt = values[5].number ?? writtenAt
        revision = min(max(values[9].number ?? 1, 1), Self.highestRevision)
        let used = values[10].number.map { min(max($0, 1), Self.highestRevision) }
        let age = values[6].number.map { StoredAge(kind: $0, milliseconds: values[7].number ?? 0) }
        let name = values[13].bytes.map { String(decoding: $0, as: UTF8.self) }
        let extended = values[15].bytes.map { Data($0) }
        let columns = SealedColumns(
            cache: cache, key: key, size: size, writtenAt: writtenAt, age: age, isPinned: isPinned != 0,
            cost: values[12].number, file: name, extended: extended)
        let payloadChecksum = checksum ^ columns.checksum
        let payloadSize = size - Int64(extended?.count ?? 0)
        if let name {
            file = (name, payloadSize, payloadChecksum)
            isSound = false
        } else {
            file = nil
            let payload = values[16].bytes
            isSound =
                payload.map { payload in
                    Int64(payload.count) == payloadSize
                        && payload.withUnsafeBytes { RowSeal.checksum($0) } == payloadChecksum
                } ?? false
        }
        var kept = values
        kept[0] = .integer(id)
        kept[5] = .integer(accessedAt)
        kept[9] = .integer(revision)
        kept[10] = used.map { .integer($0) } ?? .null
        self.values = kept
    }

    /// No release has numbered a write so high, and from here on numbers can rise.
    private static let highestRevision: Int64 = 1 << 62
}

/// An entry of the index that finds entries by cache and key.
package struct SalvagedKey: Sendable {
    package static let columnCount = 3
    package let cache: Int64
    let key: StoredKey
    let id: Int64

    /// - Returns: Nil if the values are not those of that index.
    package init?(_ record: RawRecord) {
        guard record.values.count == Self.columnCount, let cache = record.values[0].number,
            let key = StoredKey(record.values[1]), let id = record.values[2].number
        else { return nil }
        (self.cache, self.key, self.id) = (cache, key, id)
    }
}

extension GenerationRow {
    /// The numbers of columns of the table of caches and of its copy.
    package static let (columnCount, copyColumnCount) = (11, 10)

    /// The generation that a row of the table of caches, or of its copy, is about; nil if its checksum does not fit.
    package init?(_ record: RawRecord, now: Int64) {
        var values = record.values
        switch values.count {
        case Self.columnCount: values[0] = record.rowID.map { .integer($0) } ?? .null
        case Self.copyColumnCount:
            // The copy has the number at its end, and not the moment, which the checksum is not about.
            values = [values[9]] + values[..<9] + [.integer(now)]
        default: return nil
        }
        guard let name = values[1].text, let version = values[2].text, let codec = values[3].text,
            let id = values[0].number, let kind = values[4].number, let age = values[5].number,
            let keepsExpired = values[6].number, let isRetired = values[7].number, let lineage = values[8].number,
            let checksum = values[9].number
        else { return nil }
        var generation = Generation(
            name: name, version: version, codec: codec, age: StoredAge(kind: kind, milliseconds: age),
            openedAt: values[10].number ?? now)
        generation.id = id
        generation.keepsExpired = keepsExpired
        generation.lineage = lineage
        self.init(generation: generation, isRetired: isRetired != 0)
        guard self.generation.checksum(isRetired: self.isRetired) == checksum else { return nil }
    }
}

extension Connection {
    /// Adds a generation with the number that it had.
    package mutating func restore(_ row: GenerationRow) throws(SQLiteError) {
        let generation = row.generation
        try run(Queries.restoreGeneration) { (statement) throws(SQLiteError) in
            try statement.bind(generation.id, at: 1)
            try statement.bind(generation.name, at: 2)
            try statement.bind(generation.version, at: 3)
            try statement.bind(generation.codec, at: 4)
            try statement.bind(generation.age.kind, at: 5)
            try statement.bind(generation.age.milliseconds, at: 6)
            try statement.bind(generation.keepsExpired, at: 7)
            try statement.bind(Int64(row.isRetired ? 1 : 0), at: 8)
            try statement.bind(generation.lineage, at: 9)
            try statement.bind(generation.checksum(isRetired: row.isRetired), at: 10)
            try statement.bind(generation.openedAt, at: 11)
        }
    }

    /// Adds an entry; of two with one key the one that was written later stays.
    ///
    /// - Returns: False if the table refuses the row.
    package mutating func restore(_ entry: SalvagedEntry) throws(SQLiteError) -> Bool {
        for keepsID in [true, false] {
            do throws(SQLiteError) {
                try run(Queries.restoreEntry) { (statement) throws(SQLiteError) in
                    for (index, value) in entry.values.enumerated() where index > 0 || keepsID {
                        try statement.bind(value, at: Int32(index) + 1)
                    }
                }
                return true
            } catch {
                // Another entry has this number.
                guard .constraint ~= error.code else { throw error }
            }
        }
        return false
    }

    /// Whether there is an entry of this key.
    package mutating func hasRow(_ cache: Int64, _ key: StoredKey) throws(SQLiteError) -> Bool {
        try facts(cache, key) != nil
    }

    /// Whether there is the entry that an index names, by its number or by its key.
    package mutating func hasRow(_ key: SalvagedKey) throws(SQLiteError) -> Bool {
        let hasID = try with(Queries.hasRow) { (statement) throws(SQLiteError) in
            try statement.bind(key.id, at: 1)
            return try statement.step()
        }
        if hasID { return true }
        return try hasRow(key.cache, key.key)
    }
}

extension StoredKey {
    fileprivate init?(_ value: RawValue) {
        switch value {
        case .integer(let number): self = .integer(number)
        case .text(let bytes):
            self = String(validating: bytes, as: UTF8.self).map { .text($0) } ?? .foreign(.text(bytes))
        case .blob(let bytes): self = .blob(Data(bytes))
        case .real(let number): self = .foreign(.number(number))
        case .null: return nil
        }
    }
}

extension RawValue {
    fileprivate var number: Int64? { if case .integer(let number) = self { number } else { nil } }

    fileprivate var text: String? {
        if case .text(let bytes) = self { String(validating: bytes, as: UTF8.self) } else { nil }
    }

    fileprivate var bytes: [UInt8]? {
        switch self {
        case .text(let bytes), .blob(let bytes): bytes
        case .null, .integer, .real: nil
        }
    }
}
