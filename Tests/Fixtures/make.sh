#!/bin/sh
# Makes schema-N.sqlite with the library of today. Usage: make.sh N
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=$here/schema-$1.sqlite
[ ! -e "$target" ] || { echo "$target is there already, and a released schema does not change"; exit 1; }
work=$(mktemp -d)
swift build --package-path "$here/../.." --product larder-test-store
"$(swift build --package-path "$here/../.." --show-bin-path)/larder-test-store" open "$work/store.sqlite" </dev/null
sqlite3 "$work/store.sqlite" "
    INSERT INTO cache (name, version, codec, age_rule, age, opened_at) VALUES
        ('settings', '1', 'cbor', 0, 0, 1700000000000), ('articles', 'build 7', 'json', 2, 3600000, 1700000000000);
    INSERT INTO entry (cache, key, size, written_at, accessed_at, revision, payload) VALUES
        (1, 'theme', 5, 1700000000000, 1700000000001, 11, CAST('hello' AS BLOB)),
        (1, 42, 5, 1700000000000, 1700000000001, 12, CAST('1,2,3' AS BLOB));
    INSERT INTO entry (cache, key, size, written_at, accessed_at, age_rule, age, is_pinned, revision, file, checksum, extended)
        VALUES (2, x'8201', 100003, 1700000000000, 1700000000001, 1, 60000, 1, 13, 'ab/cd', 99, x'010203');
    PRAGMA wal_checkpoint(TRUNCATE);" >/dev/null
cp "$work/store.sqlite" "$target"
rm -r "$work"
echo "made $target"
