-- What a cache keeps beside its entries, and no listing shows: its place among the messages of a shared tier, and the removals
-- that it still has to tell the tier.
CREATE TABLE note (
    cache   TEXT NOT NULL,                -- cache.name
    number  INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (cache, number)
) STRICT, WITHOUT ROWID;
