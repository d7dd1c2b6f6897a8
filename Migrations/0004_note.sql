-- The program that opened a cache last, in the row of the store: a table of its own takes a page for one row.
ALTER TABLE store ADD COLUMN program TEXT;
ALTER TABLE store ADD COLUMN library TEXT;
ALTER TABLE store ADD COLUMN opened_at INTEGER;
UPDATE store SET (program, library, opened_at) = (SELECT program, library, opened_at FROM opener);
DROP TABLE opener;

-- What a cache keeps next to its entries, and no listing shows: its position among the messages of a shared tier, and the removals
-- that it still has to send. `cache` is the name of the cache.
CREATE TABLE note (
    cache   TEXT NOT NULL,
    number  INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (cache, number)
) STRICT, WITHOUT ROWID;
