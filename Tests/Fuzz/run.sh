#!/usr/bin/env bash
# Builds and runs a fuzzer, of the memory cache, of the replies of a server, or of the fields of HTTP: run.sh memory|resp|http [SECONDS]. Linux only; needs nothing but the toolchain.
# The sources are compiled for libFuzzer, so that it sees their branches.
set -euo pipefail
name=${1:?usage: run.sh memory|resp|http [SECONDS]}
seconds=${2:-60}
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/.build/fuzz
mkdir -p "$build/$name-corpus"
flags=(-O -sanitize=fuzzer,address)
case $name in
memory)
    # The memory cache needs most of its module, so the fuzzer is linked with the modules.
    # A package is named after its folder, and gives its own names to a program of the same package.
    sources=("$root/Tests/Fuzz/MemoryFuzz.swift")
    modules=$build/modules
    options=(--package-path "$root" --scratch-path "$modules")
    for flag in "${flags[@]}"; do options+=(-Xswiftc "$flag"); done
    swift build "${options[@]}" --target Larder
    bin=$(swift build "${options[@]}" --show-bin-path)
    mapfile -t objects < <(find "$bin" -path '*.build/*.o' | sort)
    flags+=(-I "$bin/Modules" -Xcc "-fmodule-map-file=$root/Sources/LarderCSQLite/module.modulemap" "${objects[@]}" -lsqlite3)
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
swiftc -swift-version 6 -D DEBUG -parse-as-library -package-name "$(basename "$root" | tr '[:upper:]' '[:lower:]')" \
    -module-name LarderFuzz -enable-upcoming-feature ExistentialAny -enable-upcoming-feature InternalImportsByDefault \
    -enable-upcoming-feature MemberImportVisibility "${sources[@]}" "${flags[@]}" -o "$build/$name"
cd "$build"
exec "./$name" -max_total_time="$seconds" -max_len=4096 -timeout=60 -print_final_stats=1 "$name-corpus"
