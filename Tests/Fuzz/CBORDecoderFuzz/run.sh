#!/usr/bin/env bash
# Fuzzes the CBOR decoder with libFuzzer and the address sanitizer. SECONDS_BOUND= bounds it (60).
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../../.." && pwd)"
build="$root/.build/fuzz/cbor"
mkdir -p "$build/found"

if [ "$(uname)" != Linux ]; then
    echo "fuzz: skipped, Apple's toolchains come without libFuzzer"
    exit 0
fi
# One module has no others to import.
rm -rf "$build/sources"
mkdir -p "$build/sources"
cp "$root"/Sources/LarderCBOR/*.swift "$here/CBORDecoderFuzz.swift" "$build/sources"
sed -i 's/^import LarderLocks$/import Synchronization/' "$build"/sources/*.swift
swiftc -O -swift-version 6 -parse-as-library -sanitize=fuzzer,address -package-name larder \
    -enable-upcoming-feature ExistentialAny -enable-upcoming-feature MemberImportVisibility \
    -enable-upcoming-feature InternalImportsByDefault \
    "$build"/sources/*.swift -o "$build/fuzz-cbor"
# New finds go to the first folder; the corpus in the repository is only read.
# Foundation keeps what it made once, which is no leak.
ASAN_OPTIONS=detect_leaks=0 "$build/fuzz-cbor" "$build/found" "$here/corpus" \
    -max_total_time="${SECONDS_BOUND:-60}" -max_len=4096 -rss_limit_mb=1024 -timeout=60 -print_final_stats=1 \
    -artifact_prefix="$build/"
