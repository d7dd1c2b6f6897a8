package import LarderSQLite

/// Every statement on the two tables.
///
/// A query on entries names the generation first (`?1`), so none can see the rows of a retired one.
package enum Queries {
    /// What `EntryFacts` is read from, in its order.
    static let facts =
        "id, revision, size, written_at, accessed_at, age_rule, age, is_pinned, file, checksum"

    /// Whether an entry is served at ?2, where those without an age of their own follow kind ?3 and age ?4.
    ///
    /// The same rule as `AgeRule.isExpired`; a test holds the two together.
    private static let isLive = isLive(kind: "?3", age: "?4")

    private static func isLive(kind: String, age: String) -> String {
        // Whoever wrote a row in the shell may have given it one of the two columns alone.
        let age = "iif(age_rule IS NULL, \(age), ifnull(age, 0))"
        return """
            CASE ifnull(age_rule, \(kind))
                WHEN 1 THEN \(age) > 0 AND ?2 - written_at <= \(age)
                WHEN 2 THEN \(age) > 0 AND ?2 - accessed_at <= \(age)
                WHEN 3 THEN ?2 <= \(age)
                ELSE 1 END
            """
    }

    // MARK: One entry

    static let find = SQL("SELECT \(facts), extended, payload, cost FROM entry WHERE cache = ?1 AND key = ?2")

    /// What `BriefRow` is read from.
    static let findBrief = SQL(
        """
        SELECT revision, size, written_at, accessed_at, age_rule, age, is_pinned, checksum, cost, file, extended, payload
        FROM entry WHERE cache = ?1 AND key = ?2
        """)

    /// What a row's checksum is about, without the payload.
    static let findColumns = SQL("SELECT \(facts), extended, cost FROM entry WHERE cache = ?1 AND key = ?2")

    static let findFacts = SQL("SELECT \(facts) FROM entry WHERE cache = ?1 AND key = ?2")

    /// From the index alone.
    static let findID = SQL("SELECT id FROM entry WHERE cache = ?1 AND key = ?2")

    /// Whose row it is, from the row itself.
    static let findOwner = SQL("SELECT cache, key FROM entry NOT INDEXED WHERE id = ?1")

    static let findBurden = SQL("SELECT file, size, is_pinned FROM entry WHERE cache = ?1 AND key = ?2")

    static let isNamed = SQL("SELECT 1 FROM entry WHERE file IS NOT NULL AND file = ?1 LIMIT 1")

    static let deleteRow = SQL("DELETE FROM entry WHERE id = ?1 AND revision = ?2")

    /// Behind the id ?1, whatever generation they are of: whether the generation is there, and whether the sizes fit.
    static let checkedRows = SQL(
        """
        SELECT \(facts), extended, payload, cost, key, cache,
            EXISTS (SELECT 1 FROM cache NOT INDEXED WHERE cache.id = entry.cache)
        FROM entry NOT INDEXED WHERE id > ?1 ORDER BY id
        """)

    static let countRows = SQL("SELECT count(*) FROM entry")

    /// Over all live generations.
    static let leastUsedOfAll = SQL(
        """
        SELECT \(facts), key, ifnull(used, revision), 1, cache FROM entry
        WHERE is_pinned = 0 AND cache IN (SELECT id FROM cache WHERE is_retired = 0)
        ORDER BY ifnull(used, revision) LIMIT ?1
        """)

    static let totalSizeOfAll = SQL(
        "SELECT \(total) FROM entry WHERE cache IN (SELECT id FROM cache WHERE is_retired = 0)")

    /// A size, which anybody may have written, as rows are read too: so that what one row says does not stay when it goes.
    private static let size =
        "CASE WHEN size > 281474976710656 THEN 281474976710656 WHEN size < -1 THEN -1 ELSE size END"

    /// Of all sizes: `sum` fails where they are too much for a number.
    private static let total = "max(0, min(CAST(total(\(size)) AS INTEGER), 1 << 60))"

    /// Another number than the row has, by which it is written: greater, unless it has one that is not to be believed.
    private static func nextRevision(_ written: String) -> String {
        "CASE WHEN revision < 4611686018427387904 THEN max(\(written), revision + 1) ELSE \(written) END"
    }

    /// The same without a write: past the last number there is a float, which the column refuses.
    private static let otherRevision = "revision + iif(revision < 9223372036854775807, 1, -1)"

    static let upsert = SQL(
        """
        INSERT INTO entry (cache, key, size, written_at, accessed_at, age_rule, age, is_pinned, revision, checksum, cost,
            file, tags, extended, payload)
        VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ifnull(?7, 0), ?8, iif(?7, ?14, ?10), ?13, ?9, ?15, ?11, ?12)
        ON CONFLICT (cache, key) DO UPDATE SET size = excluded.size, written_at = excluded.written_at,
            accessed_at = excluded.accessed_at, age_rule = excluded.age_rule, age = excluded.age,
            is_pinned = ifnull(?7, is_pinned), revision = \(nextRevision("excluded.revision")), used = NULL,
            checksum = iif(ifnull(?7, is_pinned), ?14, ?10), cost = excluded.cost, file = excluded.file,
            tags = iif(?16, tags, excluded.tags), extended = excluded.extended, payload = excluded.payload
        """)

    static let changeColumns = SQL(
        """
        UPDATE entry SET size = ?2, extended = ?3, checksum = ?4, written_at = ?6, accessed_at = ?7, age_rule = ?8, age = ?9,
            is_pinned = ?10, used = iif(?11, NULL, ifnull(used, revision)), revision = \(nextRevision("?5"))
        WHERE id = ?1
        """)

    static let delete = SQL("DELETE FROM entry WHERE cache = ?1 AND key = ?2")

    static let deleteRevision = SQL("DELETE FROM entry WHERE cache = ?1 AND key = ?2 AND revision = ?3")

    static let deleteUnused = SQL(
        "DELETE FROM entry WHERE cache = ?1 AND key = ?2 AND revision = ?3 AND ifnull(used, revision) <= ?4")

    static let touch = SQL(
        """
        UPDATE entry SET accessed_at = max(accessed_at, ?3), used = max(ifnull(used, revision), ?4)
        WHERE cache = ?1 AND key = ?2
        """)

    /// Other moments for a row of which one is in the future: the clock was set back, and the age restarts.
    static let correct = SQL(
        """
        UPDATE entry SET written_at = ?2, accessed_at = ?3, checksum = ?4, used = ifnull(used, revision),
            revision = \(otherRevision)
        WHERE id = ?1
        """)

    /// Rows of a lower revision than ?4, or of one beyond all numbers, with a moment after ?2, by id, after the id ?3.
    static let rowsAhead = SQL(
        """
        SELECT \(facts), extended, cost, key FROM entry NOT INDEXED
        WHERE cache = ?1 AND revision NOT BETWEEN ?4 AND \(RevisionSource.highest) AND (written_at > ?2 OR accessed_at > ?2) AND id > ?3 ORDER BY id
        """)

    /// Gives what is beyond the number ?2 the numbers up to it, in the same order.
    static let renumberAll = SQL(
        """
        UPDATE entry SET used = iif(ifnull(used, revision) > ?2, ?2 - place.of_use, ifnull(used, revision)),
            revision = iif(revision > ?2, ?2 - place.of_write, revision)
        FROM (
            SELECT id AS row, row_number() OVER (ORDER BY ifnull(used, revision) DESC, id DESC) AS of_use,
                row_number() OVER (ORDER BY revision DESC, id DESC) AS of_write
            FROM entry WHERE cache = ?1 AND (revision > ?2 OR used > ?2)
        ) AS place
        WHERE id = place.row
        """)

    // MARK: Many entries

    /// ?3 the last key, ?4 the last id.
    static let firstRows = SQL(
        """
        SELECT \(facts), extended, payload, cost, key FROM entry WHERE cache = ?1 AND key <= ?3 AND id <= ?4 ORDER BY key
        """)

    /// Behind the key ?2.
    static let nextRows = SQL(
        """
        SELECT \(facts), extended, payload, cost, key FROM entry
        WHERE cache = ?1 AND key > ?2 AND key <= ?3 AND id <= ?4 ORDER BY key
        """)

    static let firstFacts = SQL(
        "SELECT \(facts), key FROM entry WHERE cache = ?1 AND key <= ?3 AND id <= ?4 ORDER BY key")

    static let nextFacts = SQL(
        "SELECT \(facts), key FROM entry WHERE cache = ?1 AND key > ?2 AND key <= ?3 AND id <= ?4 ORDER BY key")

    /// From the index alone.
    package static let firstKeys = SQL("SELECT key FROM entry WHERE cache = ?1 AND key <= ?3 AND id <= ?4 ORDER BY key")

    package static let nextKeys = SQL(
        "SELECT key FROM entry WHERE cache = ?1 AND key > ?2 AND key <= ?3 AND id <= ?4 ORDER BY key")

    /// The same where no row has a greater id: to compare it takes a fifth of the time.
    package static let firstOfAllKeys = SQL("SELECT key FROM entry WHERE cache = ?1 AND key <= ?3 ORDER BY key")

    package static let nextOfAllKeys = SQL(
        "SELECT key FROM entry WHERE cache = ?1 AND key > ?2 AND key <= ?3 ORDER BY key")

    static let anyOwnAge = SQL("SELECT 1 FROM entry WHERE cache = ?1 AND age_rule IS NOT NULL LIMIT 1")

    static let oldestWrite = SQL("SELECT min(written_at) FROM entry WHERE cache = ?1")

    package static let lastKey = SQL("SELECT key FROM entry WHERE cache = ?1 ORDER BY key DESC LIMIT 1")

    static let lastID = SQL("SELECT max(id) FROM entry")

    // MARK: Orders

    /// Between the keys ?2 and ?3.
    static let firstRowsUp = keyPage(">=", "<=", "ASC")
    static let nextRowsUp = keyPage(">", "<=", "ASC")
    static let firstRowsDown = keyPage(">=", "<=", "DESC")
    static let nextRowsDown = keyPage(">=", "<", "DESC")

    private static func keyPage(_ lower: String, _ upper: String, _ direction: String) -> SQL {
        SQL(
            """
            SELECT \(facts), extended, payload, cost, key FROM entry
            WHERE cache = ?1 AND key \(lower) ?2 AND key \(upper) ?3 AND id <= ?4 ORDER BY key \(direction)
            """)
    }

    static let writtenPlaces = places("written_at", "revision")
    static let accessedPlaces = places("ifnull(used, revision)", "0")
    static let sizePlaces = places("size", "0")

    /// The ids of the rows between the keys ?2 and ?3, with what an order compares.
    private static func places(_ first: String, _ second: String) -> SQL {
        SQL("SELECT id, \(first), \(second) FROM entry WHERE cache = ?1 AND key >= ?2 AND key <= ?3")
    }

    static let rowWithID = SQL("SELECT \(facts), extended, payload, cost, key FROM entry WHERE id = ?2 AND cache = ?1")

    /// Expired ones first, then by use.
    static let leastUsed = SQL(
        """
        SELECT \(facts), key, ifnull(used, revision), \(isLive) FROM entry WHERE cache = ?1 AND is_pinned = 0
        ORDER BY \(isLive), ifnull(used, revision) LIMIT ?5
        """)

    /// The same by two rules, of which one is enough to be served.
    static let leastUsedByTwo = SQL(
        """
        SELECT \(facts), key, ifnull(used, revision), \(isLiveByTwo) FROM entry WHERE cache = ?1 AND is_pinned = 0
        ORDER BY \(isLiveByTwo), ifnull(used, revision) LIMIT ?5
        """)

    private static let isLiveByTwo = "max(\(isLive), \(isLive(kind: "?6", age: "?7")))"

    /// The next moment at which one of those with an age of their own, which are few, is served no more.
    static let nextOwnEnd = SQL(
        """
        SELECT ifnull(min(CASE age_rule WHEN 1 THEN written_at + age WHEN 2 THEN accessed_at + age WHEN 3 THEN age END),
            9223372036854775807)
        FROM entry WHERE cache = ?1 AND age_rule IS NOT NULL AND is_pinned = 0 AND \(isLive)
        """)

    /// When the first of those without an age of their own was written, and the last access that is longest ago.
    static let earliestMoments = SQL(
        "SELECT min(written_at), min(accessed_at) FROM entry WHERE cache = ?1 AND age_rule IS NULL")

    static let earliestOwnEnd = SQL(
        """
        SELECT min(CASE age_rule WHEN 1 THEN written_at + age WHEN 2 THEN accessed_at + age WHEN 3 THEN age END)
        FROM entry WHERE cache = ?1 AND age_rule IS NOT NULL
        """)

    /// Of whatever generation.
    static let anyOwnEnd = SQL("SELECT 1 FROM entry WHERE age_rule IS NOT NULL AND age_rule <> 0 LIMIT 1")

    static let countLive = SQL("SELECT count(*) FROM entry WHERE cache = ?1 AND \(isLive)")

    static let anyLive = SQL("SELECT 1 FROM entry WHERE cache = ?1 AND \(isLive) LIMIT 1")

    static let anySliding = SQL(
        "SELECT 1 FROM entry WHERE cache = ?1 AND age_rule IS NOT NULL AND age_rule = 2 LIMIT 1")

    static let countAll = SQL("SELECT count(*) FROM entry WHERE cache = ?1")

    /// Of those with an age of their own, which are few.
    static let countOwnExpired = SQL(
        "SELECT count(*) FROM entry WHERE cache = ?1 AND age_rule IS NOT NULL AND NOT (\(isLive))")

    static let totalSize = SQL("SELECT \(total) FROM entry WHERE cache = ?1")

    // MARK: Generations

    private static let generation =
        "id, name, version, codec, age_rule, age, keeps_expired, is_retired, lineage, checksum, opened_at"

    /// By its row alone, where the name leads to the index first.
    static let isLiveGeneration = SQL(
        "SELECT 1 FROM cache WHERE id = ?1 AND is_retired = 0 AND name = ?2 AND version = ?3 AND codec = ?4")

    /// All rows, from the table itself: an index that is damaged must not hide one.
    static let generations = SQL("SELECT \(generation) FROM cache NOT INDEXED ORDER BY id")

    static let retiredGeneration = SQL("SELECT id FROM cache WHERE is_retired <> 0 ORDER BY id LIMIT 1")

    static let insertGeneration = SQL(
        """
        INSERT INTO cache (name, version, codec, age_rule, age, keeps_expired, lineage, opened_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id
        """)

    /// What may change in a row, with its checksum.
    static let updateGeneration = SQL(
        """
        UPDATE cache SET age_rule = ?2, age = ?3, keeps_expired = ?4, is_retired = ?5, checksum = ?6, opened_at = ?7
        WHERE id = ?1
        """)

    static let forget = SQL("DELETE FROM cache WHERE id = ?1 AND is_retired <> 0")

    static let reclaim = SQL(
        "DELETE FROM entry WHERE id IN (SELECT id FROM entry WHERE cache = ?1 LIMIT ?2) RETURNING file")

    // MARK: Salvage

    /// Every column, in the order of the table.
    static let restoreEntry = SQL(
        """
        INSERT INTO entry (id, cache, key, size, written_at, accessed_at, age_rule, age, is_pinned, revision, used, checksum,
            cost, file, tags, extended, payload)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
        ON CONFLICT (cache, key) DO UPDATE SET size = excluded.size, written_at = excluded.written_at, accessed_at =
            excluded.accessed_at, age_rule = excluded.age_rule, age = excluded.age, is_pinned =
            excluded.is_pinned, revision = excluded.revision, used = excluded.used, checksum =
            excluded.checksum, cost = excluded.cost, file = excluded.file, tags = excluded.tags, extended =
            excluded.extended, payload = excluded.payload
        WHERE excluded.revision > revision
        """)

    static let restoreGeneration = SQL(
        """
        INSERT INTO cache (id, name, version, codec, age_rule, age, keeps_expired, is_retired, lineage, checksum, opened_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
        """)

    static let hasRow = SQL("SELECT 1 FROM entry WHERE id = ?1")
}
