package import LarderSQLite

/// A generation of a sub-cache: what stands between two purges.
package struct Generation: Sendable {
    package var id: Int64 = 0
    package var name: String
    package var version: String
    package var codec: String
    package var age: StoredAge
    package var keepsExpired: Int64 = 0
    package var openedAt: Int64
    /// The generation that this one goes on from: a clear makes a new one of the same lineage, a purge does not.
    package var lineage: Int64 = 0

    package init(name: String, version: String, codec: String, age: StoredAge, openedAt: Int64) {
        self.name = name
        self.version = version
        self.codec = codec
        self.age = age
        self.openedAt = openedAt
    }

    /// The first of its line.
    package var root: Int64 { lineage == 0 ? id : lineage }
}

extension Generation {
    /// The checksum of its row, which is not about the two moments that change all the time.
    package func checksum(isRetired: Bool) -> Int64 {
        var seal = RowSeal()
        seal.add(id)
        seal.add(name)
        seal.add(version)
        seal.add(codec)
        seal.add(age.kind)
        seal.add(age.milliseconds)
        seal.add(keepsExpired)
        seal.add(lineage)
        seal.add((isRetired ? 1 : 0) as Int64)
        return seal.checksum
    }
}

/// A row of the table of caches.
package struct GenerationRow: Sendable {
    package var generation: Generation
    package var isRetired: Bool
}

extension Connection {
    /// All generations, by id.
    ///
    /// One whose checksum does not fit is damage to the database: whichever cache it was, none may be opened in its place, and
    /// none of its entries deleted.
    package mutating func generations() throws(SQLiteError) -> [GenerationRow] {
        try with(Queries.generations) { (statement) throws(SQLiteError) in
            var rows: [GenerationRow] = []
            while try statement.step() {
                let row = GenerationRow(generation: statement.generation(), isRetired: statement.int64(7) != 0)
                guard row.generation.checksum(isRetired: row.isRetired) == statement.int64(9) else {
                    throw SQLiteError(code: .corrupt, message: "a row of the table of caches does not fit its checksum")
                }
                rows.append(row)
            }
            return rows
        }
    }

    /// The live generation of a name.
    package mutating func liveGeneration(named name: String) throws(SQLiteError) -> Generation? {
        let name = ExactName(name)
        return try generations().first { !$0.isRetired && ExactName($0.generation.name) == name }?.generation
    }

    /// Whether a generation that was live when it was looked up is so still.
    package mutating func isLive(
        _ id: Int64, named name: String, version: String, codec: String
    ) throws(SQLiteError) -> Bool {
        try with(Queries.isLiveGeneration) { (statement) throws(SQLiteError) in
            try statement.bind(id, at: 1)
            try statement.bind(name, at: 2)
            try statement.bind(version, at: 3)
            try statement.bind(codec, at: 4)
            return try statement.step()
        }
    }

    /// The live generation of every name, by name.
    package mutating func liveGenerations() throws(SQLiteError) -> [Generation] {
        try generations().filter { !$0.isRetired }.map(\.generation).sorted {
            $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
        }
    }

    /// Adds a generation, and returns it with its id.
    package mutating func insert(_ generation: Generation) throws(SQLiteError) -> Generation {
        var inserted = generation
        inserted.id = try with(Queries.insertGeneration) { (statement) throws(SQLiteError) in
            try statement.bind(generation.name, at: 1)
            try statement.bind(generation.version, at: 2)
            try statement.bind(generation.codec, at: 3)
            try statement.bind(generation.age.kind, at: 4)
            try statement.bind(generation.age.milliseconds, at: 5)
            try statement.bind(generation.keepsExpired, at: 6)
            try statement.bind(generation.lineage, at: 7)
            try statement.bind(generation.openedAt, at: 8)
            _ = try statement.step()
            let id = statement.int64(0)
            // To the end, or the insertion is undone.
            try statement.run()
            return id
        }
        // The checksum is about the id, too, which is known only now.
        try update(GenerationRow(generation: inserted, isRetired: false))
        return inserted
    }

    private mutating func update(_ row: GenerationRow) throws(SQLiteError) {
        let generation = row.generation
        try run(Queries.updateGeneration) { (statement) throws(SQLiteError) in
            try statement.bind(generation.id, at: 1)
            try statement.bind(generation.age.kind, at: 2)
            try statement.bind(generation.age.milliseconds, at: 3)
            try statement.bind(generation.keepsExpired, at: 4)
            try statement.bind(Int64(row.isRetired ? 1 : 0), at: 5)
            try statement.bind(generation.checksum(isRetired: row.isRetired), at: 6)
            try statement.bind(generation.openedAt, at: 7)
        }
    }

    private mutating func generation(_ id: Int64) throws(SQLiteError) -> GenerationRow? {
        try generations().first { $0.generation.id == id }
    }

    /// Takes a generation out of sight; its rows are reclaimed later.
    package mutating func retire(_ id: Int64) throws(SQLiteError) {
        guard var row = try generation(id), !row.isRetired else { return }
        row.isRetired = true
        try update(row)
    }

    /// Writes down what the latest opening declared.
    package mutating func declare(
        _ id: Int64, age: StoredAge, keepsExpired: Int64, openedAt: Int64
    ) throws(SQLiteError) {
        guard var row = try generation(id) else { return }
        row.generation.age = age
        row.generation.keepsExpired = keepsExpired
        row.generation.openedAt = openedAt
        try update(row)
    }

    /// A generation that waits to be reclaimed.
    package mutating func retiredGeneration() throws(SQLiteError) -> Int64? {
        try generations().first { $0.isRetired }?.generation.id
    }

    /// Deletes up to so many rows of a generation, and the generation once none is left.
    ///
    /// - Returns: How many rows went, and the files that they named.
    package mutating func reclaim(
        _ id: Int64, atMost limit: Int
    ) throws(SQLiteError) -> (count: Int, files: [String]) {
        var files: [String] = []
        var count = 0
        try with(Queries.reclaim) { (statement) throws(SQLiteError) in
            try statement.bind(id, at: 1)
            try statement.bind(Int64(limit), at: 2)
            while try statement.step() {
                count += 1
                if statement.type(of: 0) != .null { files.append(statement.text(0)) }
            }
        }
        if count < limit {
            try run(Queries.forget) { (statement) throws(SQLiteError) in try statement.bind(id, at: 1) }
        }
        return (count, files)
    }
}

extension Statement {
    fileprivate func generation() -> Generation {
        var generation = Generation(
            name: text(1), version: text(2), codec: text(3),
            age: StoredAge(kind: int64(4), milliseconds: int64(5)), openedAt: int64(10))
        generation.id = int64(0)
        generation.keepsExpired = int64(6)
        generation.lineage = int64(8)
        return generation
    }
}
