package import LarderSQLite

/// Every statement over rows and incarnations.
extension SQL {
    // The columns of `EntryHeader`, in its order; the checksum; the payload.
    private static let header =
        "id, revision, written_at, expires_at, coalesce(size, length(payload)), file, meta, checksum"

    static let findRow = SQL("SELECT \(header) FROM entry WHERE cache = ?1 AND key = ?2")
    // The size is NULL if the payload is in the row, of which SQLite knows the length without reading it.
    static let readRow = SQL(
        """
        SELECT id, revision, written_at, expires_at, size, file, meta, checksum, payload
        FROM entry WHERE cache = ?1 AND key = ?2
        """)

    // Pages in the order of keys, one for each `KeyRange.Start`. The keys alone come from the index.
    static let keyPages = pages("id, key")
    static let headerPages = pages("\(header), key")
    static let rowPages = pages("\(header), payload, key")
    /// The rows that a migration has not taken in as they are now.
    static let unmigratedPages = pages(
        "\(header), payload, key",
        """
        AND NOT EXISTS (
            SELECT 1 FROM entry AS taken WHERE taken.cache IN (SELECT id FROM cache WHERE state = 2)
                AND taken.key = entry.key AND taken.revision = ((entry.revision >> 31) << 31) | taken.cache)
        """)
    /// The statements of pages, which tests explain: keys, header, rows.
    package static var pageTexts: [String] { (keyPages + headerPages + rowPages).map(\.text) }
    private static func pages(_ columns: String, _ condition: String = "") -> [SQL] {
        [("key >= ?3", ""), ("key > ?3", ""), ("key < ?3", "DESC"), ("true", "DESC")].map { bound, order in
            SQL(
                "SELECT \(columns) FROM entry WHERE cache = ?1 AND \(bound) \(condition) ORDER BY key \(order) LIMIT ?2"
            )
        }
    }

    static let versions = SQL("SELECT id, revision, key FROM entry WHERE cache = ?1 LIMIT ?2")

    // What a `RowList` has of each row, one for each `RowOrder`.
    static let lists = [
        SQL("SELECT id, key, written_at FROM entry WHERE cache = ?1 ORDER BY key"),
        SQL(
            """
            SELECT entry.id, key, \(lastUse)
            FROM entry LEFT JOIN used ON used.id = entry.id WHERE cache = ?1 ORDER BY key
            """),
        SQL("SELECT id, key, coalesce(size, length(payload)), meta FROM entry WHERE cache = ?1 ORDER BY key"),
    ]
    static let listedRow = SQL("SELECT \(header), payload, key FROM entry WHERE id = ?1 AND cache = ?2")

    static let listedHeader = SQL("SELECT \(header), key FROM entry WHERE id = ?1 AND cache = ?2")

    static let insertRow = SQL(
        """
        INSERT INTO entry (revision, written_at, expires_at, checksum, meta, payload, id, file, size, cache, key)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
        """)
    // A damaged index leads to the row of another key, so these compare what the row itself has.
    static let updateRow = SQL(
        """
        UPDATE entry SET revision = ?1, written_at = ?2, expires_at = ?3, checksum = ?4, meta = ?5, payload = ?6,
            file = ?8, size = ?9
        WHERE id = ?7 AND +cache = ?10 AND +key = ?11
        """)
    static let updateAttributes = SQL(
        """
        UPDATE entry SET revision = ?1, written_at = ?2, expires_at = ?3, checksum = ?4, meta = ?5
        WHERE id = ?6 AND +cache = ?7 AND +key = ?8
        """)
    static let lastAccess = SQL("SELECT accessed_at FROM used WHERE id = ?1")
    static let deleteRow = SQL("DELETE FROM entry WHERE id = ?1")
    static let deleteRowOfKey = SQL("DELETE FROM entry WHERE id = ?1 AND +cache = ?2 AND +key = ?3")
    static let deleteRevision = SQL("DELETE FROM entry WHERE id = ?1 AND revision = ?2")
    static let deleteUse = SQL("DELETE FROM used WHERE id = ?1")

    /// The rows without attributes: totals, first own end, first write, and first access of the others.
    static let countPlainRows = SQL(
        """
        SELECT count(*), sum(min(max(coalesce(size, length(payload)), 0), 1 << 40)), min(expires_at),
            min(CASE WHEN expires_at IS NULL THEN written_at END),
            min(CASE WHEN expires_at IS NULL THEN max(written_at, coalesce(accessed_at, written_at)) END)
        FROM entry LEFT JOIN used ON used.id = entry.id WHERE cache = ?1 AND meta IS NULL
        """)
    /// The same of rows that do not slide, for which no last access counts.
    static let countSteadyRows = SQL(
        """
        SELECT count(*), sum(min(max(coalesce(size, length(payload)), 0), 1 << 40)), min(expires_at),
            min(CASE WHEN expires_at IS NULL THEN written_at END)
        FROM entry WHERE cache = ?1 AND meta IS NULL
        """)
    static let otherRows = SQL("SELECT \(header) FROM entry WHERE cache = ?1 AND meta IS NOT NULL")
    static let agesOfRows = SQL("SELECT \(header) FROM entry WHERE cache = ?1")

    private static let incarnationColumns =
        "id, name, version, codec, age_rule, age, count_limit, size_limit, keeps_expired, state, checksum, key_kind"
    static let incarnations = SQL("SELECT \(incarnationColumns), 0 FROM cache NOT INDEXED")
    static let insertIncarnation = SQL(
        """
        INSERT INTO cache (\(incarnationColumns), opened_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
        """)
    static let updateIncarnation = SQL(
        """
        UPDATE cache SET version = ?3, codec = ?4, age_rule = ?5, age = ?6, count_limit = ?7, size_limit = ?8,
            keeps_expired = ?9, state = ?10, checksum = ?11, key_kind = ?12, opened_at = max(opened_at, ?13)
        WHERE id = ?1 AND name = ?2
        """)
    static let retiredVersion = SQL(
        """
        SELECT version FROM cache WHERE state = 1 AND name = ?2 AND NOT (version = ?3 AND codec = ?4)
            AND EXISTS (SELECT 1 FROM entry WHERE entry.cache = cache.id AND key = ?1)
        """)
    /// Whether a cache has more rows than ?2.
    static let hasMoreRows = SQL("SELECT 1 FROM entry WHERE cache = ?1 LIMIT 1 OFFSET ?2")
    static let hasIncarnation = SQL("SELECT 1 FROM cache WHERE id = ?1")
    static let sealIncarnation = SQL("UPDATE cache SET checksum = ?2 WHERE id = ?1")
    // What a look into a store shows. The index of the keys alone counts.
    static let countOfCache = SQL("SELECT count(*) FROM entry WHERE cache = ?1")
    static let countOfRows = SQL("SELECT count(*) FROM entry")
    static let countOfFiles = SQL("SELECT count(*) FROM entry WHERE file IS NOT NULL")
    static let opener = SQL("SELECT program, library, opened_at FROM store WHERE program IS NOT NULL")
    static let activityOfCache = SQL(
        "SELECT counter, sum(min(max(value, 0), 1 << 53)) FROM activity WHERE cache = ?1 AND day > ?2 GROUP BY counter")
    static let daysOfCache = SQL(
        "SELECT day, counter, min(max(value, 0), 1 << 53) FROM activity WHERE cache = ?1 AND day > ?2 ORDER BY day")
    static let countOfWritten = SQL(
        "SELECT count(*) FROM entry WHERE cache = ?1 AND written_at > ?2 AND written_at <= ?3")
    static let openedAt = SQL("SELECT opened_at FROM cache WHERE id = ?1")
    static let setOpenedAt = SQL("UPDATE cache SET opened_at = ?1 WHERE id = ?2 AND opened_at <= ?3")
    static let nextID = SQL("SELECT min(id) FROM entry WHERE id >= ?1")
    static let migratingIncarnation = SQL("SELECT id FROM cache WHERE state = 2 LIMIT 1")
    static let isMigrating = SQL("SELECT 1 FROM cache WHERE state = 2 AND id = ?1")
    /// The rows that a migration has taken in and that are gone since.
    static let vanishedRows = SQL(
        """
        SELECT id FROM entry WHERE cache = ?1
            AND NOT EXISTS (SELECT 1 FROM entry AS old WHERE old.cache = ?2 AND old.key = entry.key)
        """)
    static let retiredIncarnation = SQL("SELECT id FROM cache WHERE state = 1 LIMIT 1")
    private static let retiredRows =
        "(SELECT id FROM entry NOT INDEXED WHERE id >= ?2 AND id <= ?3 AND cache = ?1 ORDER BY id LIMIT ?4)"
    static let deleteRetiredUses = SQL("DELETE FROM used WHERE id IN \(retiredRows)")
    static let deleteRetiredRows = SQL("DELETE FROM entry WHERE id IN \(retiredRows)")
    static let anyFile = SQL("SELECT id FROM entry WHERE file IS NOT NULL LIMIT 1")
    static let retiredFiles = SQL("SELECT file FROM entry WHERE id IN \(retiredRows) AND file IS NOT NULL")
    static let deleteIncarnation = SQL("DELETE FROM cache WHERE id = ?1")

    static let insertTag = SQL("INSERT OR REPLACE INTO tag (tag, cache, entry, revision) VALUES (?1, ?2, ?3, ?4)")
    static let deleteTag = SQL("DELETE FROM tag WHERE tag = ?1 AND cache = ?2 AND entry = ?3")
    static let taggedRows = SQL(
        """
        SELECT entry.id, entry.revision FROM tag JOIN entry ON entry.id = tag.entry AND entry.revision = tag.revision
            AND entry.cache = tag.cache
        WHERE tag = ?1 AND tag.cache = ?2 LIMIT coalesce(?3, -1)
        """)
    static let tagsOfCache = SQL(
        """
        SELECT tag, entry FROM tag JOIN entry ON entry.id = tag.entry AND entry.revision = tag.revision
            AND entry.cache = tag.cache
        WHERE tag.cache = ?1
        """)
    static let tagsFrom = SQL(
        """
        SELECT tag, cache, entry FROM tag WHERE (tag, cache, entry) >= (?1, ?2, ?3) ORDER BY tag, cache, entry LIMIT 10000
        """)

    static let headerByID = SQL("SELECT \(header), key, cache FROM entry WHERE id = ?1")
    static let sweptRows = SQL("SELECT \(header), NULL, cache FROM entry WHERE id >= ?1 ORDER BY id LIMIT 10000")
    static let highestID = SQL("SELECT max(id) FROM entry")
    static let valueFiles = SQL("SELECT file FROM entry WHERE file IS NOT NULL")
    /// The names in the table itself: a damaged index does not have all of them.
    static let namedFiles = SQL("SELECT id, file FROM entry NOT INDEXED WHERE id >= ?1 ORDER BY id LIMIT 10000")
    static let namesFile = SQL("SELECT 1 FROM entry WHERE file = ?1")
    static let insertStore = SQL("INSERT INTO store (id) VALUES (1)")
    static let storeLimits = SQL("SELECT size_limit, free_space_floor FROM store")
    static let sizeOfFiles = SQL(
        "SELECT sum(min(max(size, 0), 1 << 40)) FROM entry WHERE cache = ?1 AND file IS NOT NULL")
    static let setStoreLimits = SQL("UPDATE store SET size_limit = ?1, free_space_floor = ?2")

    /// A row that was written or accessed later than ?4 stays as it is.
    static let storeAccess = SQL(
        """
        INSERT INTO used (id, accessed_at)
        SELECT id, ?3 FROM entry WHERE id = ?1 AND revision = ?2 AND written_at <= ?4
        ON CONFLICT (id) DO UPDATE SET accessed_at = ?3 WHERE accessed_at <= ?4 AND accessed_at < ?3
        """)
    static let addActivity = SQL(
        """
        INSERT INTO activity (cache, day, counter, value) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET value = min(max(value, 0), 1 << 60) + excluded.value
        """)
    static let deleteOldActivity = SQL("DELETE FROM activity WHERE day < ?1")
    static let notes = SQL("SELECT number, content FROM note WHERE cache = ?1")
    static let note = SQL("SELECT content FROM note WHERE cache = ?1 AND number = ?2")
    // What is there already is not written.
    static let setNote = SQL(
        """
        INSERT INTO note (cache, number, content) VALUES (?1, ?2, ?3)
        ON CONFLICT DO UPDATE SET content = excluded.content WHERE content IS NOT excluded.content
        """)
    static let deleteNote = SQL("DELETE FROM note WHERE cache = ?1 AND number = ?2")
    static let deleteNotes = SQL("DELETE FROM note WHERE cache = ?1")
    static let hasNotes = SQL("SELECT 1 FROM sqlite_schema WHERE name = 'note'")
    static let salvagedNotes = SQL("SELECT cache, number, content FROM note")
    static let deleteActivity = SQL("DELETE FROM activity WHERE cache = ?1")
    /// The latest opening: its moment at the most once a minute, and its program at once.
    static let noteOpener = SQL(
        """
        UPDATE store SET program = ?1, library = ?2, opened_at = ?3
        WHERE program IS NOT ?1 OR library IS NOT ?2 OR opened_at NOT BETWEEN ?3 - 60000 AND ?3
        """)

    // A store as the beginning of others.
    /// Deletes what tells of the use of a store, and the rows that wait to be deleted.
    static let cleaning = """
        DELETE FROM entry WHERE cache NOT IN (SELECT id FROM cache WHERE state = 0);
        DELETE FROM cache WHERE state != 0;
        DELETE FROM tag WHERE NOT EXISTS (
            SELECT 1 FROM entry
            WHERE entry.id = tag.entry AND entry.revision = tag.revision AND entry.cache = tag.cache);
        DELETE FROM used;
        DELETE FROM activity;
        DELETE FROM note;
        UPDATE store SET program = NULL, library = NULL, opened_at = NULL;
        UPDATE cache SET opened_at = 0;
        VACUUM
        """

    /// Returns the views that show the tables of an older step as those of the newest.
    static func views(ofStep step: Int32) -> [String: String] {
        var views: [String: String] = [:]
        views["cache"] = """
            SELECT id, name, version, codec, age_rule, age, count_limit, size_limit, keeps_expired, state, opened_at,
                \(step < 2 ? "0 AS checksum" : "checksum"), NULL AS key_kind FROM main.cache
            """
        if step >= 4 { return views }
        let opener = ["program", "library", "opened_at"].map {
            step < 2 ? "NULL AS \($0)" : "(SELECT \($0) FROM main.opener) AS \($0)"
        }
        views["store"] = "SELECT id, size_limit, free_space_floor, \(opener.joined(separator: ", ")) FROM main.store"
        views["note"] = "SELECT NULL AS cache, NULL AS number, NULL AS content WHERE false"
        return views
    }

    /// The order of use, in which an access comes behind the writes of its millisecond, as ``Access/order(at:)`` says.
    private static let lastUse = "max(written_at * 2, coalesce(accessed_at * 2 + 1, written_at * 2))"
    // The first ?1 rows in that order, of the cache ?2 or of all. The first bit of `meta` is the pin.
    private static let isFree = "(meta IS NULL OR unicode(CAST(substr(meta, 1, 1) AS TEXT)) & 1 = 0)"
    private static let victim =
        "entry.id, revision, written_at, expires_at, coalesce(size, length(payload)), file, meta, checksum, key, cache"
    static let leastRecentlyUsed = SQL(
        """
        SELECT \(victim), \(lastUse), accessed_at IS NOT NULL
        FROM entry NOT INDEXED LEFT JOIN used ON used.id = entry.id
        WHERE (cache = ?2 OR ?2 IS NULL AND cache IN (SELECT id FROM cache WHERE state = 0)) AND \(isFree)
        ORDER BY 11, 1 LIMIT ?1
        """)
    static let leastRecentlyUsedByKey = SQL(
        """
        SELECT \(victim), \(lastUse), accessed_at IS NOT NULL FROM entry LEFT JOIN used ON used.id = entry.id
        WHERE cache = ?2 AND \(isFree) ORDER BY 11, 1 LIMIT ?1
        """)

    static let verifiedRows = SQL(
        "SELECT \(header), payload, key, cache FROM entry NOT INDEXED WHERE id >= ?1 ORDER BY id LIMIT 500")
    /// Both copies of the incarnations, in their table and in an index: as this step of the schema has them, and as earlier
    /// ones had them.
    static let salvagedIncarnations = [
        copies(incarnationColumns),
        copies(firstColumns + ", count_limit, size_limit, keeps_expired, state, checksum, NULL"),
        copies(firstColumns + ", NULL, NULL, keeps_expired, state, 0, NULL"),
    ]
    private static let firstColumns = "id, name, version, codec, age_rule, age"
    private static func copies(_ columns: String) -> [SQL] {
        [
            SQL("SELECT \(columns), opened_at FROM cache NOT INDEXED"),
            SQL("SELECT \(columns), 0 FROM cache INDEXED BY cache_copy ORDER BY name"),
        ]
    }
    private static let entryColumns =
        "id, cache, key, revision, written_at, expires_at, checksum, file, size, meta, payload"
    static let salvagedEntries = SQL("SELECT \(entryColumns) FROM entry NOT INDEXED WHERE id >= ?1 ORDER BY id")
    static let salvagedEntry = SQL("SELECT \(entryColumns) FROM entry NOT INDEXED WHERE id = ?1")
    /// Of two rows with one key, of which a damaged index has hidden the older, the later stays.
    static let insertEntry = SQL(
        """
        INSERT OR REPLACE INTO entry (\(entryColumns)) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11
        WHERE NOT EXISTS (SELECT 1 FROM entry WHERE cache = ?2 AND key = ?3 AND id > ?1)
        """)
    static let countEntries = SQL("SELECT count(*) FROM entry")
    static let hasEntry = SQL("SELECT 1 FROM entry WHERE cache = ?1 AND key = ?2")
    /// What the index of keys names, from both ends.
    static let indexedEntries = ["", " DESC"].map {
        SQL("SELECT id, cache, key FROM entry INDEXED BY entry_key ORDER BY cache\($0), key\($0)")
    }
    static let salvagedUses = SQL("SELECT id, accessed_at FROM used WHERE id >= ?1 ORDER BY id")
    static let insertUse = SQL(
        "INSERT INTO used (id, accessed_at) SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM entry WHERE id = ?1)")
    static let salvagedActivity = SQL("SELECT cache, day, counter, value FROM activity")
}
