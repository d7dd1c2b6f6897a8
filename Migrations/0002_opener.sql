-- Nothing reads it.
ALTER TABLE store DROP COLUMN opened_at;

-- One row: the program that opened a cache last.
CREATE TABLE opener (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    program   TEXT NOT NULL,
    library   TEXT NOT NULL,              -- the release of Larder
    opened_at INTEGER NOT NULL            -- milliseconds since 1970, to the minute
) STRICT;

-- A row of `cache` and its second copy tell which of them is damaged. The migration fills the column.
ALTER TABLE cache ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
DROP INDEX cache_copy;
CREATE INDEX cache_copy ON cache (
    name, version, codec, age_rule, age, count_limit, size_limit, keeps_expired, state, checksum);
