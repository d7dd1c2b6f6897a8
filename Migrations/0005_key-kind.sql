-- What the keys of a cache are: 1 integers, 2 texts, 3 bytes. NULL: not known, until the cache is opened.
ALTER TABLE cache ADD COLUMN key_kind INTEGER;
DROP INDEX cache_copy;
CREATE INDEX cache_copy ON cache (
    name, version, codec, age_rule, age, count_limit, size_limit, keeps_expired, state, checksum, key_kind);
