#!/usr/bin/env bash
# Byte-for-byte agreement with Python's cbor2. COUNT= values each way, SEED= repeats a run.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=.build/interop-venv

if ! command -v python3 >/dev/null; then
    echo "interop needs python3." >&2
    exit 1
fi
if ! "$venv/bin/python" -c 'import cbor2' 2>/dev/null; then
    if ! { python3 -m venv "$venv" && "$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'cbor2>=5.6,<6'; }; then
        echo "interop needs Python's cbor2, which could not be installed (no pip, or no network)." >&2
        exit 1
    fi
fi
swift build --product larder-test-cbor
"$venv/bin/python" Tests/Interop/cbor2_agreement.py "$(swift build --show-bin-path)/larder-test-cbor" \
    "${COUNT:-3000}" ${SEED:+"$SEED"}
