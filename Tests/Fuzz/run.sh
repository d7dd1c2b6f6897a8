#!/usr/bin/env bash
# Builds and runs a fuzzer, of the memory cache, of the replies of a server, or of the fields of HTTP: run.sh memory|resp|http [SECONDS]. Linux only; needs nothing but the toolchain.
# The sources are built into one module with the fuzzer, so that libFuzzer sees their branches.
set -euo pipefail
name=${1:?usage: run.sh memory|resp|http [SECONDS]}
seconds=${2:-60}
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/.build/fuzz
mkdir -p "$build/$name-corpus"
case $name in
memory)
    # Not the memory tier, which needs the store, and no snapshots.
    larder=$root/Sources/Larder
    mapfile -t sources < <(ls "$larder"/{Table,MemoryCache,Pressure}/*.swift | grep -v Snapshot)
    sources+=("$larder"/{Values/CacheError,Values/MaxAge,Cache/EvictionTask}.swift)
    sources+=("$root"/Sources/LarderStore/{Rows/AgeRule,Rows/RowVersion,Store/CurrentThread,Store/Int64+Saturating}.swift)
    sources+=("$root"/Sources/LarderStore/Time/{SystemClock,Timekeeper,TimerThread}.swift)
    sources+=("$root/Tests/Fuzz/MemoryFuzz.swift")
    # One module has no others to import.
    mkdir -p "$build/$name-sources"
    for index in "${!sources[@]}"; do
        copy=$build/$name-sources/$(basename "${sources[$index]}")
        sed -e '/^\(internal\|package\|public\) import LarderStore$/d' \
            -e 's/^\(internal\|public\) import LarderLocks$/\1 import Synchronization/' "${sources[$index]}" >"$copy"
        sources[index]=$copy
    done
    ;;
resp)
    sources=("$root/Sources/LarderRedis/RESPValue.swift" "$root/Tests/Fuzz/RESPFuzz.swift")
    ;;
http)
    sources=("$root"/Sources/LarderHTTP/{CacheControl,HTTPDate,HTTPKeys,HTTPMessages,StructuredFields}.swift "$root/Tests/Fuzz/HTTPFuzz.swift")
    ;;
*)
    echo "no fuzzer named $name" >&2
    exit 2
    ;;
esac
for source in "${sources[@]}"; do [ -f "$source" ] || { echo "$source is missing: it was moved." >&2; exit 1; }; done
swiftc -swift-version 6 -O -D DEBUG -sanitize=fuzzer,address -parse-as-library -package-name larder \
    -module-name LarderFuzz -enable-upcoming-feature ExistentialAny -enable-upcoming-feature InternalImportsByDefault \
    -enable-upcoming-feature MemberImportVisibility "${sources[@]}" -o "$build/$name"
cd "$build"
exec "./$name" -max_total_time="$seconds" -max_len=4096 -timeout=60 -print_final_stats=1 "$name-corpus"
