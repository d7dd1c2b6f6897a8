-- One row per generation of a cache. A purge retires the row and adds another; ids are never reused.
CREATE TABLE cache (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL,
    version       TEXT    NOT NULL,
    codec         TEXT    NOT NULL,
    age_rule      INTEGER NOT NULL,            -- 0 unlimited, 1 since the write, 2 since the last access, 3 until a moment
    age           INTEGER NOT NULL DEFAULT 0,  -- milliseconds; with rule 3 since 1970
    keeps_expired INTEGER NOT NULL DEFAULT 0,  -- milliseconds that sweeps leave an entry after its expiration
    is_retired    INTEGER NOT NULL DEFAULT 0,
    lineage       INTEGER NOT NULL DEFAULT 0,  -- id of the generation this one follows after a clear; 0: its own
    checksum      INTEGER NOT NULL DEFAULT 0,  -- of the columns before it
    opened_at     INTEGER NOT NULL             -- milliseconds since 1970
) STRICT;

CREATE UNIQUE INDEX cache_live ON cache (name) WHERE is_retired = 0;

-- A second copy of each row on other pages, so that one damaged page loses no cache.
CREATE INDEX cache_copy ON cache (name, version, codec, age_rule, age, keeps_expired, is_retired, lineage, checksum);

-- One row per entry. The wide columns are last, so that a listing of metadata does not read them.
CREATE TABLE entry (
    id          INTEGER PRIMARY KEY,
    cache       INTEGER NOT NULL,              -- cache.id
    key         ANY     NOT NULL,              -- TEXT, INTEGER, or a BLOB of canonical CBOR
    size        INTEGER NOT NULL,              -- payload and extended data, bytes
    written_at  INTEGER NOT NULL,              -- milliseconds since 1970
    accessed_at INTEGER NOT NULL,              -- milliseconds since 1970
    age_rule    INTEGER,                       -- the entry's own age, as in cache; NULL: the cache's
    age         INTEGER,
    is_pinned   INTEGER NOT NULL DEFAULT 0,
    revision    INTEGER NOT NULL,              -- another number with every write of the row, rising with time
    used        INTEGER,                       -- place in the order of use, on the scale of revision; NULL: the write
    checksum    INTEGER,                       -- of all columns but id, accessed_at, revision, used, tags; of a file's bytes, too
    cost        INTEGER,                       -- against the cost limit of memory; NULL: the size of the payload
    file        TEXT,                          -- name of the payload's file, when it is not in the row
    tags        TEXT,                          -- JSON array of the entry's tags in order; NULL: none
    extended    BLOB,
    payload     BLOB
) STRICT;

CREATE UNIQUE INDEX entry_key ON entry (cache, key);

-- Few entries have an age of their own; those that have none are not in this index.
CREATE INDEX entry_own_age ON entry (cache) WHERE age_rule IS NOT NULL;

-- Few have a file; a sweep of the folder asks which files are named.
CREATE INDEX entry_file ON entry (file) WHERE file IS NOT NULL;

-- Which entries have a tag. A row counts if the entry it names has the tag: a write of the entry leaves old rows behind.
CREATE TABLE tag (
    tag   TEXT    NOT NULL,
    cache INTEGER NOT NULL,                    -- cache.id
    entry INTEGER NOT NULL,                    -- entry.id
    PRIMARY KEY (tag, cache, entry)
) STRICT, WITHOUT ROWID;
