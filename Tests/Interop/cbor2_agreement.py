"""Compares our CBOR with Python's cbor2, byte by byte, in both directions, over generated values.

usage: cbor2_agreement.py <larder-test-cbor> [count] [seed]
"""

import decimal
import random
import struct
import subprocess
import sys
import uuid

import cbor2


def canonical(value):
    return cbor2.dumps(value, canonical=True)


def make_text(rng):
    return "".join(rng.choice(["a", "Z", "\0", "é", "漢", "😀", "e\u0301", "word"]) for _ in range(rng.randrange(12)))


def make_double(rng):
    while True:
        value = struct.unpack(">d", rng.randbytes(8))[0]
        if value == value:
            return value


def make_decimal(rng):
    # Without zeros at the end: we write a decimal in lowest terms, cbor2 as it was spelled.
    digits = rng.randrange(1, 10 ** rng.randrange(1, 30))
    while digits % 10 == 0:
        digits //= 10
    return decimal.Decimal((rng.randrange(2), tuple(int(d) for d in str(digits)), rng.randrange(-60, 60)))


def make(rng, depth):
    kind = rng.randrange(14 if depth > 0 else 10)
    if kind == 0:
        return None
    if kind == 1:
        return rng.random() < 0.5
    if kind == 2:
        return rng.randrange(-(2**70), 2**70) >> rng.randrange(70)
    if kind == 3:
        return rng.randrange(-300, 300)
    if kind == 4:
        return make_double(rng)
    if kind == 5:
        # No half of 32768 and more: cbor2 5 writes those in single precision, where RFC 8949 (Appendix A) has f97bff.
        return rng.choice([0.0, -0.0, 1.5, 32752.0, 65505.0, 2.0**-24, 2.0**-25, 5.5e-5, float("inf"), float("-inf"),
                           float("nan"), 3.4028234663852886e38, 16777217.0, rng.randrange(-4096, 4096) / 64])
    if kind == 6:
        return make_text(rng)
    if kind == 7:
        return rng.randbytes(rng.choice([0, 1, 5, 15, 17, 23, 24, 255, 256]))
    if kind == 8:
        return uuid.UUID(bytes=rng.randbytes(16))
    if kind == 9:
        return make_decimal(rng)
    size = rng.choice([0, 1, 2, 3, 5, 24, 30]) if depth > 2 else rng.randrange(5)
    if kind in (10, 11):
        return [make(rng, depth - 1) for _ in range(size)]
    entries = {}
    for _ in range(size):
        # Canonically equal keys are one key of a Swift dictionary, and so an error: keep them apart by a number.
        entries[f"{rng.randrange(10**rng.randrange(1, 30))}{make_text(rng)}"] = make(rng, depth - 1)
    return entries


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(2**32)
    rng = random.Random(seed)
    print(f"cbor2 {getattr(cbor2, '__version__', '')}, {count} values each way, seed {seed}")
    failures = 0

    def check(name, ours, theirs, what):
        nonlocal failures
        if ours == theirs:
            return
        failures += 1
        if failures <= 10:
            print(f"{name}: {what!r}\n  ours   {ours}\n  theirs {theirs}")

    # Theirs, canonical and not, decoded and encoded again by us.
    values = [make(rng, 4) for _ in range(count)]
    lines = [canonical(v).hex() for v in values] + [cbor2.dumps(v).hex() for v in values]
    echoed = subprocess.run([program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    replies = echoed.stdout.splitlines()
    if len(replies) != len(lines):
        sys.exit(f"{len(lines)} values went in, {len(replies)} came out")
    for value, reply in zip(values + values, replies):
        check("python to swift", reply, canonical(value).hex(), value)

    # Ours, plain and deterministic by turns, decoded and encoded again by them.
    generated = subprocess.run([program, "generate", str(count)], capture_output=True, text=True, check=True)
    replies = generated.stdout.splitlines()
    if len(replies) != count:
        sys.exit(f"asked for {count} values, got {len(replies)}")
    for number, line in enumerate(replies):
        value = cbor2.loads(bytes.fromhex(line))
        if number % 2 == 1:
            check("swift to python", line, canonical(value).hex(), value)
        else:
            echoed_back = canonical(value)
            check("swift to python, read", cbor2.loads(echoed_back) == value or value != value, True, value)
    if failures:
        sys.exit(f"{failures} disagreements, seed {seed}")
    print("agreed on every byte")


main()
