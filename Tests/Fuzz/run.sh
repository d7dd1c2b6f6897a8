#!/usr/bin/env bash
# Builds and runs the fuzzer of the memory cache: run.sh memory [SECONDS]. Linux only; needs nothing but the toolchain.
# The sources are built into one module with the fuzzer, so that libFuzzer sees their branches.
set -euo pipefail
name=${1:?usage: run.sh memory [SECONDS]}
seconds=${2:-60}
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/.build/fuzz
mkdir -p "$build/$name-corpus"
case $name in
memory)
    sources=("$root"/Sources/Larder/Memory/*.swift "$root"/Sources/Larder/Support/{AgeRule,SystemClock,CurrentThread}.swift
        "$root"/Sources/Larder/Support/{MaxAge,Timekeeper,TimerThread,Int64+Saturating,EvictionTask,ExpiryTimer,SweepClock}.swift
        "$root"/Sources/Larder/Errors/{CacheError,CacheError+Code}.swift
        "$root/Tests/Fuzz/MemoryFuzz.swift")
    ;;
*)
    echo "no fuzzer named $name" >&2
    exit 2
    ;;
esac
swiftc -swift-version 6 -O -D DEBUG -sanitize=fuzzer,address -parse-as-library -package-name larder \
    -module-name LarderFuzz -enable-upcoming-feature ExistentialAny -enable-upcoming-feature InternalImportsByDefault \
    -enable-upcoming-feature MemberImportVisibility "${sources[@]}" -o "$build/$name"
cd "$build"
exec "./$name" -max_total_time="$seconds" -max_len=4096 -timeout=60 -print_final_stats=1 "$name-corpus"
