-- The order of use is the later of `entry.written_at` and `used.accessed_at`.
ALTER TABLE used DROP COLUMN place;
ALTER TABLE store DROP COLUMN last_place;

-- A full disk keeps each process from adding pages by itself.
ALTER TABLE store DROP COLUMN is_capped;
