"""Python's diskcache with the settings it has by itself: what peer.h says, in Python."""

import random
import sys
import time

from diskcache import Cache

operation, survival, folder, entries, operations = sys.argv[1:]
entries, operations = int(entries), int(operations)
value_size = 300
random.seed(41)


def value(edition):
    return edition.to_bytes(8, "little") + b"\x07" * (value_size - 8)


# Its default, NORMAL, is written out.
cache = Cache(folder, sqlite_synchronous=2 if survival == "power" else 1)
with cache.transact():
    for key in range(entries):
        cache.set(key, value(key))
keys = [entries + index if operation == "set" else random.randrange(entries) for index in range(operations)]
for key in keys[:200]:
    cache.get(key)
values = [value(entries + index) for index in range(operations)]

start = time.perf_counter_ns()
if operation in ("set", "replace"):
    for key, data in zip(keys, values):
        cache.set(key, data)
elif operation == "get":
    for key in keys:
        if len(cache.get(key)) != value_size:
            sys.exit("looking up failed")
else:
    for key in keys:
        if cache.get(key + entries) is not None:
            sys.exit("looking up failed")
print((time.perf_counter_ns() - start) / operations)
