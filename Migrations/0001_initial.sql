-- One row: what holds for the whole store.
CREATE TABLE store (
    id               INTEGER PRIMARY KEY CHECK (id = 1),
    size_limit       INTEGER,             -- bytes over all caches; NULL: none
    free_space_floor INTEGER,             -- bytes that stay free on the disk; NULL: none
    is_capped        INTEGER NOT NULL DEFAULT 0,
    last_place       INTEGER NOT NULL DEFAULT 0, -- in the order of accesses
    opened_at        INTEGER NOT NULL     -- 0; raised in a damaged file, so that other processes see a commit
) STRICT;

-- One row for each generation of a cache. Ids are random.
CREATE TABLE cache (
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL,
    version       TEXT NOT NULL,
    codec         TEXT NOT NULL,
    age_rule      INTEGER NOT NULL,       -- 0 unlimited, 1 since the write, 2 since the last access, 3 until a moment
    age           INTEGER NOT NULL,       -- milliseconds; with rule 3 since 1970
    count_limit   INTEGER,
    size_limit    INTEGER,
    keeps_expired INTEGER NOT NULL DEFAULT 0,
    state         INTEGER NOT NULL,       -- 0 live, 1 retired
    opened_at     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX cache_live ON cache (name) WHERE state = 0;

-- A second copy of each row on other pages, for recovery.
CREATE INDEX cache_copy ON cache (name, version, codec, age_rule, age, keeps_expired, state);

CREATE TABLE entry (
    id         INTEGER PRIMARY KEY,
    cache      INTEGER NOT NULL,          -- cache.id
    key        ANY NOT NULL,              -- TEXT, INTEGER, or a BLOB of canonical CBOR
    revision   INTEGER NOT NULL,          -- 64 random bits for each write
    written_at INTEGER NOT NULL,          -- milliseconds since 1970
    expires_at INTEGER,                   -- the entry's own end; NULL: the cache's rule, the largest number: none
    checksum   INTEGER NOT NULL,
    file       TEXT,                      -- name of the value file, if the payload is not in the row
    size       INTEGER,                   -- bytes of that file
    meta       BLOB,                      -- pin, own sliding age, cost, extended data, tags; NULL: none of them
    payload    BLOB
) STRICT;
CREATE UNIQUE INDEX entry_key ON entry (cache, key);
CREATE INDEX entry_file ON entry (file) WHERE file IS NOT NULL;

-- A row only for an entry that was accessed since it was written.
CREATE TABLE used (
    id          INTEGER PRIMARY KEY,      -- entry.id
    place       INTEGER NOT NULL,         -- in the order of accesses, on the scale of ids
    accessed_at INTEGER NOT NULL          -- milliseconds since 1970
) STRICT;

-- A row whose revision is not the entry's is ignored.
CREATE TABLE tag (
    tag      TEXT NOT NULL,
    cache    INTEGER NOT NULL,
    entry    INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (tag, cache, entry)
) STRICT, WITHOUT ROWID;

CREATE TABLE activity (
    cache   TEXT NOT NULL,                -- cache.name
    day     INTEGER NOT NULL,
    counter INTEGER NOT NULL,
    value   INTEGER NOT NULL,
    PRIMARY KEY (cache, day, counter)
) STRICT, WITHOUT ROWID;
