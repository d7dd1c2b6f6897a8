internal import Foundation
package import LarderSQLite

/// How the tags of an entry stand in its row.
package enum EntryTags {
    /// The tags of a set as rows have them, in order.
    package static func list(_ tags: Set<String>) -> [String] {
        Set(tags.map { normalized($0) }).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// A tag as rows have it: in NFC, and with U+0001 and a digit in place of U+0000 and U+0001, since the text of a JSON
    /// value ends at U+0000 in SQLite.
    package static func normalized(_ tag: String) -> String {
        let tag = tag.precomposedStringWithCanonicalMapping
        guard tag.utf8.contains(where: { $0 < 2 }) else { return tag }
        return tag.replacing("\u{1}", with: "\u{1}1").replacing("\u{0}", with: "\u{1}0")
    }

    /// The JSON array of tags.
    static func text(of tags: [String]) -> String {
        "[" + tags.map { quoted($0) }.joined(separator: ",") + "]"
    }

    private static func quoted(_ tag: String) -> String {
        var text = "\""
        for scalar in tag.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\u{0}"..."\u{1F}":
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }
}

extension Connection {
    /// Notes the tags of the entry of a key, which was just written.
    package mutating func addTags(_ tags: [String], _ generation: Int64, _ key: StoredKey) throws(SQLiteError) {
        let id = try with(Queries.findID) { (statement) throws(SQLiteError) -> Int64? in
            try statement.bind(generation, at: 1)
            return try statement.binding(key, at: 2) { (statement) throws(SQLiteError) in
                try statement.step() ? statement.int64(0) : nil
            }
        }
        guard let id else { return }
        for tag in tags {
            try run(Queries.addTag) { (statement) throws(SQLiteError) in
                try statement.bind(generation, at: 1)
                try statement.bind(id, at: 2)
                try statement.bind(tag, at: 3)
            }
        }
    }

    /// The entries of a generation that have a tag.
    package mutating func tagged(_ tag: String, _ generation: Int64) throws(SQLiteError) -> [ListedFacts] {
        try with(Queries.taggedFacts) { (statement) throws(SQLiteError) in
            try statement.bind(tag, at: 1)
            try statement.bind(generation, at: 2)
            var rows: [ListedFacts] = []
            while try statement.step() { rows.append(ListedFacts(key: statement.key(10), facts: statement.facts())) }
            return rows
        }
    }

    /// The live generations in which entries may have a tag.
    package mutating func generations(tagged tag: String) throws(SQLiteError) -> [Int64] {
        try with(Queries.taggedCaches) { (statement) throws(SQLiteError) in
            try statement.bind(tag, at: 1)
            var ids: [Int64] = []
            while try statement.step() { ids.append(statement.int64(0)) }
            return ids
        }
    }

    /// Deletes up to so many notes of tags that no entry has any more.
    ///
    /// - Returns: How many.
    package mutating func deleteStaleTags(atMost limit: Int) throws(SQLiteError) -> Int {
        try run(Queries.deleteStaleTags) { (statement) throws(SQLiteError) in try statement.bind(Int64(limit), at: 1) }
        return changes
    }

    /// How many notes of tags there are.
    package mutating func countTags() throws(SQLiteError) -> Int {
        try with(Queries.countTags) { (statement) throws(SQLiteError) in
            try statement.step() ? Int(statement.int64(0)) : 0
        }
    }

    /// Notes the tags of all entries, after a salvage.
    package mutating func restoreTags() throws(SQLiteError) { try run(Queries.restoreTags) }
}
