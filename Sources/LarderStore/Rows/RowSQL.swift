package import LarderSQLite

/// Every statement over rows and generations.
extension SQL {
    // The columns of `RowFacts`, in its order; the checksum; the payload.
    private static let facts =
        "id, revision, written_at, expires_at, coalesce(size, length(payload)), file, meta, checksum"

    static let findRow = SQL("SELECT \(facts) FROM entry WHERE cache = ?1 AND key = ?2")
    static let readRow = SQL("SELECT \(facts), payload FROM entry WHERE cache = ?1 AND key = ?2")

    // Pages in the order of keys, one for each `KeyRange.Start`. The keys alone come from the index.
    static let keyPages = pages("key")
    static let factPages = pages("\(facts), key")
    static let rowPages = pages("\(facts), payload, key")
    /// The statements of pages, which tests explain: keys, facts, rows.
    package static var pageTexts: [String] { (keyPages + factPages + rowPages).map(\.text) }
    private static func pages(_ columns: String) -> [SQL] {
        ["key >= ?3 ORDER BY key", "key > ?3 ORDER BY key", "key < ?3 ORDER BY key DESC", "true ORDER BY key DESC"].map
        {
            SQL("SELECT \(columns) FROM entry WHERE cache = ?1 AND \($0) LIMIT ?2")
        }
    }

    // What a `RowList` has of each row, one for each `RowOrder`.
    static let lists = [
        SQL("SELECT id, key, written_at FROM entry WHERE cache = ?1 ORDER BY key"),
        SQL(
            """
            SELECT entry.id, key, max(written_at, coalesce(accessed_at, written_at))
            FROM entry LEFT JOIN used ON used.id = entry.id WHERE cache = ?1 ORDER BY key
            """),
        SQL("SELECT id, key, coalesce(size, length(payload)), meta FROM entry WHERE cache = ?1 ORDER BY key"),
    ]
    static let listedRow = SQL("SELECT \(facts), payload, key FROM entry WHERE id = ?1 AND cache = ?2")

    static let insertRow = SQL(
        """
        INSERT INTO entry (revision, written_at, expires_at, checksum, meta, payload, cache, key)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        """)
    static let updateRow = SQL(
        """
        UPDATE entry SET revision = ?1, written_at = ?2, expires_at = ?3, checksum = ?4, meta = ?5, payload = ?6,
            file = NULL, size = NULL
        WHERE id = ?7
        """)
    static let updateAttributes = SQL(
        """
        UPDATE entry SET revision = ?1, written_at = ?2, expires_at = ?3, checksum = ?4, meta = ?5 WHERE id = ?6
        """)
    static let deleteRow = SQL("DELETE FROM entry WHERE id = ?1")
    static let deleteUse = SQL("DELETE FROM used WHERE id = ?1")
    static let insertTag = SQL("INSERT OR REPLACE INTO tag (tag, cache, entry, revision) VALUES (?1, ?2, ?3, ?4)")

    /// One statement, so that it sees one moment.
    static let countRows = SQL(
        """
        SELECT count(*), sum(coalesce(size, length(payload))), NULL FROM entry WHERE cache = ?1
        UNION ALL SELECT 0, 0, meta FROM entry WHERE cache = ?1 AND meta IS NOT NULL
        """)

    static let liveGenerations = SQL("SELECT id, name, version, codec, age_rule, age FROM cache WHERE state = 0")
    static let insertGeneration = SQL(
        """
        INSERT INTO cache (id, name, version, codec, age_rule, age, state, opened_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)
        """)
    static let retireGeneration = SQL("UPDATE cache SET state = 1 WHERE id = ?1")
    static let updateGeneration = SQL("UPDATE cache SET age_rule = ?2, age = ?3, opened_at = ?4 WHERE id = ?1")
    static let copyGeneration = SQL(
        """
        INSERT INTO cache (id, name, version, codec, age_rule, age, count_limit, size_limit, inline_limit,
            keeps_expired, state, opened_at)
        SELECT ?2, name, version, codec, age_rule, age, count_limit, size_limit, inline_limit, keeps_expired, 0, opened_at
        FROM cache WHERE id = ?1
        """)
    static let nextID = SQL("SELECT min(id) FROM entry WHERE id >= ?1")
    static let retiredGeneration = SQL("SELECT id FROM cache WHERE state = 1 LIMIT 1")
    private static let retiredRows =
        "(SELECT id FROM entry NOT INDEXED WHERE id >= ?2 AND id <= ?3 AND cache = ?1 ORDER BY id LIMIT ?4)"
    static let deleteRetiredUses = SQL("DELETE FROM used WHERE id IN \(retiredRows)")
    static let deleteRetiredRows = SQL("DELETE FROM entry WHERE id IN \(retiredRows)")
    static let deleteGeneration = SQL("DELETE FROM cache WHERE id = ?1")
}
