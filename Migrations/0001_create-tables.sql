-- One row per generation of a sub-cache. A purge retires the row and makes a new one; ids are never reused.
CREATE TABLE cache (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    name         TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    codec        TEXT    NOT NULL,
    age_rule     INTEGER NOT NULL,             -- 0 unlimited, 1 since the write, 2 since the last access, 3 until a moment
    age          INTEGER NOT NULL DEFAULT 0,   -- milliseconds; with rule 3 since 1970
    keeps_expired INTEGER NOT NULL DEFAULT 0,  -- milliseconds that sweeps leave an entry after its end
    opened_at    INTEGER NOT NULL,             -- milliseconds since 1970
    is_retired   INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX cache_live ON cache (name) WHERE is_retired = 0;

-- One row per entry. The wide columns stand last, so that a listing of metadata does not read them.
CREATE TABLE entry (
    id          INTEGER PRIMARY KEY,
    cache       INTEGER NOT NULL,              -- cache.id
    key         ANY     NOT NULL,              -- TEXT, INTEGER, or a BLOB of canonical CBOR
    size        INTEGER NOT NULL,              -- payload and extended data, bytes
    written_at  INTEGER NOT NULL,              -- milliseconds since 1970
    accessed_at INTEGER NOT NULL,              -- milliseconds since 1970
    age_rule    INTEGER,                       -- the entry's own age, as in cache; NULL: the sub-cache's
    age         INTEGER,
    is_pinned   INTEGER NOT NULL DEFAULT 0,
    revision    INTEGER NOT NULL,              -- another one with every write of the row
    file        TEXT,                          -- name of the payload's file, when it is not in the row
    checksum    INTEGER,                       -- of the file's bytes
    extended    BLOB,
    payload     BLOB
) STRICT;

CREATE UNIQUE INDEX entry_key ON entry (cache, key);
