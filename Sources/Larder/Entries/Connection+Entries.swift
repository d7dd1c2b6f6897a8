internal import Foundation
package import LarderSQLite

extension Connection {
    /// The row of a key, with its bytes.
    package mutating func row(_ generation: Int64, _ key: StoredKey) throws(SQLiteError) -> EntryRow? {
        try with(Queries.find) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            return try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in
                try statement.step() ? statement.row(generation, key) : nil
            }
        }
    }

    /// What a read of a key's value needs of its row.
    package mutating func brief(_ generation: Int64, _ key: StoredKey) throws(SQLiteError) -> BriefRow? {
        try with(Queries.findBrief) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            return try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in
                try statement.step() ? statement.brief(generation, key) : nil
            }
        }
    }

    /// What the row of a key says, without its bytes.
    package mutating func facts(_ generation: Int64, _ key: StoredKey) throws(SQLiteError) -> EntryFacts? {
        try with(Queries.findFacts) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            return try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in
                try statement.step() ? statement.facts() : nil
            }
        }
    }

    /// Writes an entry, in place of what the key had.
    package mutating func put(
        _ generation: Int64, _ key: StoredKey, _ content: EntryContent, file: StoredFile? = nil, revision: Int64
    ) throws(SQLiteError) {
        let columns = SealedColumns(
            cache: generation, key: key, size: Int64(content.size), writtenAt: content.writtenAt, age: content.age,
            isPinned: false, cost: content.cost.map { Int64($0) }, file: file?.name, extended: content.extended)
        let payloadChecksum = file?.checksum ?? content.payload.withUnsafeBytes { RowSeal.checksum($0) }
        let checksum = columns.checksum ^ payloadChecksum
        try with(Queries.upsert) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            try statement.bind(Int64(content.size), at: 3)
            try statement.bind(content.writtenAt, at: 4)
            if let age = content.age {
                try statement.bind(age.kind, at: 5)
                try statement.bind(age.milliseconds, at: 6)
            }
            if let isPinned = content.isPinned { try statement.bind(Int64(isPinned ? 1 : 0), at: 7) }
            try statement.bind(revision, at: 8)
            try statement.bind(checksum, at: 10)
            try statement.bind(checksum ^ SealedColumns.pin, at: 14)
            if let extended = content.extended { try statement.bind(Array(extended), at: 11) }
            if let cost = content.cost { try statement.bind(Int64(cost), at: 13) }
            try statement.bind(Int64(content.keepsTags ? 1 : 0), at: 16)
            if !content.tags.isEmpty { try statement.bind(EntryTags.text(of: content.tags), at: 15) }
            if let file {
                try statement.bind(file.name, at: 9)
                try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in try statement.run() }
                return
            }
            try statement.binding(content.payload, at: 12) { (statement) throws(SQLiteError) in
                try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in try statement.run() }
            }
        }
    }

    /// Changes columns of an entry, and leaves its payload, unless it was written since.
    ///
    /// - Parameters:
    ///   - isWrite: Whether the entry counts as written, for the order of use.
    ///   - largest: The size beyond which an entry does not grow.
    /// - Returns: The new size; one beyond `largest` where nothing was changed for that.
    package mutating func change(
        _ generation: Int64, _ key: StoredKey, seen revision: Int64, next: Int64, isWrite: Bool, atMost largest: Int64,
        _ change: (inout SealedColumns) -> Void
    ) throws(SQLiteError) -> Int64 {
        guard let (facts, old) = try columns(generation, key), facts.revision == revision else { return 0 }
        var new = old
        change(&new)
        if new.size > max(largest, old.size) { return new.size }
        try run(Queries.changeColumns) { (statement) throws(SQLiteError) in
            try statement.bind(facts.id, at: 1)
            try statement.bind(new.size, at: 2)
            if let extended = new.extended { try statement.bind(Array(extended), at: 3) }
            try statement.bind(facts.checksum ^ old.checksum ^ new.checksum, at: 4)
            try statement.bind(next, at: 5)
            try statement.bind(new.writtenAt, at: 6)
            try statement.bind(isWrite ? max(facts.accessedAt, new.writtenAt) : facts.accessedAt, at: 7)
            if let age = new.age {
                try statement.bind(age.kind, at: 8)
                try statement.bind(age.milliseconds, at: 9)
            }
            try statement.bind(Int64(new.isPinned ? 1 : 0), at: 10)
            try statement.bind(Int64(isWrite ? 1 : 0), at: 11)
        }
        return min(new.size, largest)
    }

    /// The columns of a key's row that its checksum is about, without the payload.
    private mutating func columns(
        _ generation: Int64, _ key: StoredKey
    ) throws(SQLiteError) -> (facts: EntryFacts, columns: SealedColumns)? {
        try with(Queries.findColumns) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            return try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in
                guard try statement.step() else { return nil }
                let facts = statement.facts()
                return (facts, statement.columns(generation, key, facts, extended: 10, cost: 11))
            }
        }
    }

    /// Deletes a key; false if it was not there.
    package mutating func delete(_ generation: Int64, _ key: StoredKey) throws(SQLiteError) -> Bool {
        try onKey(Queries.delete, generation, key)
    }

    /// Deletes a key unless it was written since; false if it was, or is not there.
    package mutating func delete(
        _ generation: Int64, _ key: StoredKey, revision: Int64
    ) throws(SQLiteError) -> Bool {
        try onKey(Queries.deleteRevision, generation, key, revision)
    }

    /// Deletes a key unless it was written or used since.
    package mutating func delete(
        _ generation: Int64, _ key: StoredKey, revision: Int64, used: Int64
    ) throws(SQLiteError) -> Bool {
        try onKey(Queries.deleteUnused, generation, key, revision, used)
    }

    /// The file of a key, the size of its entry, and whether that is pinned; nil if it is not there.
    package mutating func burden(
        _ generation: Int64, _ key: StoredKey
    ) throws(SQLiteError) -> (file: String?, size: Int64, isPinned: Bool)? {
        try with(Queries.findBurden) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            return try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in
                guard try statement.step() else { return nil }
                return (
                    statement.type(of: 0) == .null ? nil : statement.text(0), statement.size(1), statement.int64(2) != 0
                )
            }
        }
    }

    /// Which of these files a row names.
    package mutating func named(_ files: [String]) throws(SQLiteError) -> Set<String> {
        var found: Set<String> = []
        for file in files {
            try with(Queries.isNamed) { (statement) throws(SQLiteError) in
                try statement.bind(file, at: 1)
                if try statement.step() { found.insert(file) }
            }
        }
        return found
    }

    /// Notes that a key was read.
    package mutating func touch(
        _ generation: Int64, _ key: StoredKey, at moment: Int64, used: Int64
    ) throws(SQLiteError) {
        _ = try onKey(Queries.touch, generation, key, moment, used)
    }

    /// Takes every later moment of entries with a lower revision for `moment`.
    package mutating func correctMoments(
        _ generation: Int64, to moment: Int64, writtenBefore revision: Int64
    ) throws(SQLiteError) {
        var last = Int64.min
        while true {
            let after = last
            let rows = try with(Queries.rowsAhead) {
                (statement) throws(SQLiteError) -> [(facts: EntryFacts, columns: SealedColumns)] in
                try statement.bind(generation, at: 1)
                try statement.bind(moment, at: 2)
                try statement.bind(after, at: 3)
                try statement.bind(revision, at: 4)
                var rows: [(EntryFacts, SealedColumns)] = []
                while rows.count < Self.rowsPerPage, try statement.step() {
                    let facts = statement.facts()
                    rows.append(
                        (facts, statement.columns(generation, statement.key(12), facts, extended: 10, cost: 11)))
                }
                return rows
            }
            guard let end = rows.last?.facts.id, end > last else { return }
            last = end
            for (facts, old) in rows {
                var new = old
                new.writtenAt = min(old.writtenAt, moment)
                try run(Queries.correct) { (statement) throws(SQLiteError) in
                    try statement.bind(facts.id, at: 1)
                    try statement.bind(new.writtenAt, at: 2)
                    try statement.bind(min(facts.accessedAt, moment), at: 3)
                    try statement.bind(facts.checksum ^ old.checksum ^ new.checksum, at: 4)
                }
            }
        }
    }

    /// Puts what is above `number` in the order of writes and of uses below it, in the same order.
    package mutating func renumber(_ generation: Int64, above number: Int64) throws(SQLiteError) {
        try run(Queries.renumberAll) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            try statement.bind(number, at: 2)
        }
    }

    private mutating func onKey(
        _ sql: SQL, _ generation: Int64, _ key: StoredKey, _ numbers: Int64...
    ) throws(SQLiteError) -> Bool {
        try with(sql) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            for (index, number) in numbers.enumerated() { try statement.bind(number, at: Int32(index) + 3) }
            try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in try statement.run() }
        }
        return changes > 0
    }
}

extension Statement {
    /// Binds a key where it lies while `body` runs.
    func binding<R>(
        _ key: StoredKey, at index: Int32, _ body: (borrowing Statement) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        switch key {
        case .integer(let number):
            try bind(number, at: index)
            return try body(self)
        case .text(let text): return try binding(text: text, at: index, body)
        case .blob(let bytes): return try binding(bytes, at: index, body)
        case .foreign:
            try bind(key, at: index)
            return try body(self)
        }
    }

    /// Binds bytes where they lie while `body` runs.
    func binding<R>(
        _ bytes: Data, at index: Int32, _ body: (borrowing Statement) throws(SQLiteError) -> R
    ) throws(SQLiteError) -> R {
        let result: Result<R, SQLiteError> = bytes.withUnsafeBytes { bytes in
            Result { () throws(SQLiteError) in try binding(blob: bytes, at: index, body) }
        }
        return try result.get()
    }

    /// Binds a copy of a key.
    func bind(_ key: StoredKey, at index: Int32) throws(SQLiteError) {
        switch key {
        case .integer(let number): try bind(number, at: index)
        case .text(let text): try bind(text, at: index)
        case .blob(let bytes): try bind(Array(bytes), at: index)
        case .foreign(.number(let number)): try bind(number, at: index)
        case .foreign(.text(let bytes)): try bind(textBytes: bytes, at: index)
        }
    }

    /// The facts in the first ten columns.
    func facts() -> EntryFacts {
        EntryFacts(
            id: int64(0), revision: int64(1), size: size(2), writtenAt: int64(3), accessedAt: int64(4),
            age: type(of: 5) == .null ? nil : StoredAge(kind: int64(5), milliseconds: int64(6)),
            isPinned: int64(7) != 0, file: type(of: 8) == .null ? nil : text(8), checksum: int64(9))
    }

    /// The columns of `Queries.findBrief`.
    func brief(_ generation: Int64, _ key: StoredKey) -> BriefRow {
        let file = type(of: 9) == .null ? nil : text(9)
        let columns = SealedColumns(
            cache: generation, key: key, size: size(1), writtenAt: int64(2),
            age: type(of: 4) == .null ? nil : StoredAge(kind: int64(4), milliseconds: int64(5)),
            isPinned: int64(6) != 0, cost: type(of: 8) == .null ? nil : int64(8), file: file,
            extended: type(of: 10) == .null ? nil : data(10))
        return BriefRow(
            revision: int64(0), size: columns.size, writtenAt: columns.writtenAt, accessedAt: int64(3),
            age: columns.age, extendedCount: columns.extended?.count ?? 0,
            payload: file == nil && type(of: 11) == .blob ? data(11) : nil, file: file,
            payloadChecksum: int64(7) ^ columns.checksum)
    }

    /// The facts in the first ten columns, then extended data, payload and cost, of the row of a key.
    func row(_ generation: Int64, _ key: StoredKey) -> EntryRow {
        let facts = facts()
        let columns = columns(generation, key, facts, extended: 10, cost: 12)
        return EntryRow(
            facts: facts, extended: columns.extended,
            payload: facts.file == nil && type(of: 11) != .null ? data(11) : nil, cost: columns.cost,
            payloadChecksum: facts.checksum ^ columns.checksum)
    }

    /// What the checksum of a row is about, where the facts are known.
    func columns(
        _ generation: Int64, _ key: StoredKey, _ facts: EntryFacts, extended: Int32, cost: Int32
    ) -> SealedColumns {
        SealedColumns(
            cache: generation, key: key, size: facts.size, writtenAt: facts.writtenAt, age: facts.age,
            isPinned: facts.isPinned, cost: type(of: cost) == .null ? nil : int64(cost), file: facts.file,
            extended: type(of: extended) == .null ? nil : data(extended))
    }

    /// A size in a column, which anybody may have written: within bounds in which sizes can be added up.
    fileprivate func size(_ column: Int32) -> Int64 { max(-1, min(int64(column), 1 << 48)) }

    /// A copy of the bytes in a column.
    func data(_ column: Int32) -> Data {
        withBytes(column) { Data($0) }
    }

    /// The key in a column.
    func key(_ column: Int32) -> StoredKey {
        switch type(of: column) {
        case .integer: .integer(int64(column))
        case .text: exactText(column).map { .text($0) } ?? .foreign(.text(bytes(column)))
        case .real: .foreign(.number(double(column)))
        default: .blob(data(column))
        }
    }
}
