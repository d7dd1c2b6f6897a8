internal import LarderSQLite

/// The statements on the table of tags.
extension Queries {
    private static let hasTag = "EXISTS (SELECT 1 FROM json_each(iif(json_valid(tags), tags, '[]')) WHERE value = ?1)"

    static let countTags = SQL("SELECT count(*) FROM tag")

    static let addTag = SQL("INSERT OR IGNORE INTO tag (tag, cache, entry) VALUES (?3, ?1, ?2)")

    /// The entries of the tag ?1 in the generation ?2.
    static let taggedFacts = SQL(
        """
        SELECT \(facts), key FROM entry
        WHERE id IN (SELECT entry FROM tag WHERE tag = ?1 AND tag.cache = ?2) AND cache = ?2 AND \(hasTag)
        """)

    /// The live generations in which entries may have the tag ?1.
    static let taggedCaches = SQL(
        "SELECT DISTINCT cache FROM tag WHERE tag = ?1 AND cache IN (SELECT id FROM cache WHERE is_retired = 0)")

    /// So many rows of which the entry has been deleted, or has no tags any more.
    static let deleteStaleTags = SQL(
        """
        DELETE FROM tag WHERE (tag, cache, entry) IN (
            SELECT tag, cache, entry FROM tag AS old WHERE NOT EXISTS (
                SELECT 1 FROM entry, json_each(iif(json_valid(tags), tags, '[]'))
                WHERE entry.id = old.entry AND entry.cache = old.cache AND value = old.tag
            ) LIMIT ?1
        )
        """)

    /// Every tag of every entry, after a salvage.
    static let restoreTags = SQL(
        """
        INSERT OR IGNORE INTO tag (tag, cache, entry)
        SELECT value, entry.cache, entry.id FROM entry, json_each(iif(json_valid(tags), tags, '[]')) WHERE tags IS NOT NULL
        """)
}
