package import Foundation
package import LarderSQLite

extension Connection {
    /// The row of a key, with its bytes.
    package mutating func row(_ generation: Int64, _ key: StoredKey) throws(SQLiteError) -> EntryRow? {
        try with(Queries.find) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            return try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in
                guard try statement.step() else { return nil }
                var row = statement.row()
                if statement.type(of: 12) != .null { row.cost = statement.int64(12) }
                return row
            }
        }
    }

    /// What a read of a key's value needs of its row.
    package mutating func brief(_ generation: Int64, _ key: StoredKey) throws(SQLiteError) -> BriefRow? {
        try with(Queries.findBrief) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            return try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in
                try statement.step() ? statement.brief() : nil
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
        try with(Queries.upsert) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            try statement.bind(Int64(content.size), at: 3)
            try statement.bind(content.writtenAt, at: 4)
            if let age = content.age {
                try statement.bind(age.kind, at: 5)
                try statement.bind(age.milliseconds, at: 6)
            }
            try statement.bind(Int64(content.isPinned ? 1 : 0), at: 7)
            try statement.bind(revision, at: 8)
            if let extended = content.extended { try statement.bind(Array(extended), at: 11) }
            if let cost = content.cost { try statement.bind(Int64(cost), at: 13) }
            if let file {
                try statement.bind(file.name, at: 9)
                try statement.bind(file.checksum, at: 10)
                try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in try statement.run() }
                return
            }
            try statement.binding(content.payload, at: 12) { (statement) throws(SQLiteError) in
                try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in try statement.run() }
            }
        }
    }

    /// Puts other extended data beside an entry, unless it was written since.
    package mutating func setExtended(
        _ generation: Int64, _ key: StoredKey, _ extended: Data?, seen revision: Int64, next: Int64
    ) throws(SQLiteError) {
        try with(Queries.setExtended) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            try statement.bind(revision, at: 3)
            if let extended { try statement.bind(Array(extended), at: 4) }
            try statement.bind(next, at: 5)
            try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in try statement.run() }
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

    /// Takes a moment in the future for now.
    package mutating func correct(_ generation: Int64, _ key: StoredKey, now: Int64) throws(SQLiteError) {
        _ = try onKey(Queries.correct, generation, key, now)
    }

    /// Takes every moment in the future for another one, and puts the order of writes and uses into the past.
    ///
    /// - Parameters:
    ///   - moment: The one that is taken instead.
    ///   - number: What the order has come to by the system's clock.
    package mutating func correctAll(
        _ generation: Int64, now: Int64, to moment: Int64, number: Int64
    ) throws(SQLiteError) {
        try run(Queries.correctAll) { (statement) throws(SQLiteError) in
            try statement.bind(generation, at: 1)
            try statement.bind(moment, at: 2)
            try statement.bind(now, at: 3)
        }
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
    func brief() -> BriefRow {
        let file = type(of: 6) == .null ? nil : text(6)
        return BriefRow(
            revision: int64(0), size: size(1), writtenAt: int64(2), accessedAt: int64(3),
            age: type(of: 4) == .null ? nil : StoredAge(kind: int64(4), milliseconds: int64(5)),
            extendedCount: byteCount(7), payload: type(of: 8) == .blob ? data(8) : nil,
            file: file, checksum: file == nil ? 0 : int64(8))
    }

    /// The facts and the bytes in the first twelve columns.
    func row() -> EntryRow {
        EntryRow(
            facts: facts(), extended: type(of: 10) == .null ? nil : data(10),
            payload: type(of: 11) == .null ? nil : data(11))
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
