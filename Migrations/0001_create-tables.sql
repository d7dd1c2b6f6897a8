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
    is_retired   INTEGER NOT NULL DEFAULT 0,
    lineage      INTEGER NOT NULL DEFAULT 0,   -- id of the generation this one goes on from after a clear; 0: its own
    latest_at    INTEGER NOT NULL DEFAULT 0    -- no entry was written after this moment, by the writer's clock
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
    revision    INTEGER NOT NULL,              -- another one with every write of the row, and rising with time
    used        INTEGER,                       -- place in the order of use, on the scale of revision; NULL: the write
    file        TEXT,                          -- name of the payload's file, when it is not in the row
    checksum    INTEGER,                       -- of the file's bytes
    extended    BLOB,
    payload     BLOB
) STRICT;

CREATE UNIQUE INDEX entry_key ON entry (cache, key);

-- Few entries have an age of their own; those that have none are not in this index.
CREATE INDEX entry_own_age ON entry (cache) WHERE age_rule IS NOT NULL;

-- Few have a file; whoever sweeps the folder asks which are named.
CREATE INDEX entry_file ON entry (file) WHERE file IS NOT NULL;

-- A row changed by other means than ours, in the shell for instance, gets another revision too, so that copies of it in
-- memory are known to be old.
CREATE TRIGGER entry_changed AFTER UPDATE OF cache, key, size, written_at, age_rule, age, file, extended, payload ON entry
WHEN new.revision = old.revision
BEGIN
    UPDATE entry SET revision = revision + 1 WHERE id = new.id;
END;
