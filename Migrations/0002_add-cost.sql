-- What an entry counts against the cost limit of memory where a call gave it; NULL: the size of its payload. Few have one,
-- and a NULL behind the payload is known without reading that.
ALTER TABLE entry ADD COLUMN cost INTEGER;
