"""Inputs that went wrong, made without end from good ones; every run follows from its seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from tests.evidence.traces import mutation

LONGEST = 4096
"""Bytes of an input: what a parser does with more it does with this."""

NUMBERS = (
    b"0", b"-1", b"1e999", b"NaN", b"-Infinity", b"9" * 25, b"9" * 5000, b"4294967295",
    b"18446744073709551615", b"0.0000001", b"1_000", b"0x10", "\u00b2".encode(), "\u0663".encode(),
    b"99999999999-", b"0-99999999999", b"2026-99-99", b"true", b"null", b"max",
)  # fmt: skip
PIECES = (
    b"", b"\x00", b"\n", b"\r\n", b"\t", b" " * 40, b"\xff\xfe", b"\xed\xa0\x80", b"\x1b[31m",
    "\u2028".encode(), "\u202e".encode(), b"{", b"}", b"[", b"]", b"[" * 1200, b'{"a":' * 300,
    b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b",", b":", b": ", b";", b"=", b"(", b")", b"-",
    b"#", b"%", b"/", b"..", b"&a ", b"*a", b"!!python/object:os.system ", b"? ", b"- ", b"<<: ",
    b"|\n", b"a" * 2000, b"A9z_" * 50,
)  # fmt: skip


def inputs(seed: int, good: Sequence[bytes], values: bool) -> Iterator[bytes]:
    """Damaged copies of the good ones, each changed one to five times; where they hold ``values``
    (JSON, a file or a line of it, or YAML), every other one is whole and has other values."""
    chance = random.Random(seed)
    tokens = [*NUMBERS, *PIECES]
    parsed = [found for data in good if values and (found := _parsed(data)) is not None]
    while True:
        if parsed and chance.random() < 0.5:
            lines = chance.choice(parsed)
            yield b"\n".join(mutation.changed(chance.getrandbits(60), line) for line in lines)
            continue
        made = bytearray(chance.choice(good))
        for _ in range(chance.randint(1, 5)):
            _change(chance, made, good, tokens)
        yield bytes(made[:LONGEST])


def _parsed(data: bytes) -> list[Any] | None:
    """The values of an input, one for each line where it is lines of JSON."""
    try:
        found = [json.loads(line) for line in data.split(b"\n")]
    except ValueError:
        try:
            found = [yaml.safe_load(data)]
        except (ValueError, yaml.YAMLError, RecursionError):
            return None
    return found if all(isinstance(value, dict | list) for value in found) else None


def _change(
    chance: random.Random, made: bytearray, good: Sequence[bytes], tokens: Sequence[bytes]
) -> None:
    at = chance.randrange(len(made) + 1)
    length = chance.choice((1, 1, 2, 4, 8, 64, 500))
    what = chance.randrange(8)
    if what == 0:
        del made[at : at + length]
    elif what == 1:
        del made[at:]
    elif what == 2:
        made[at:at] = made[at : at + length] * chance.choice((1, 1, 1, 3))
    elif what == 3:
        made[at : at + length] = chance.randbytes(length)
    elif what == 4 and made:
        made[at - 1] ^= 1 << chance.randrange(8)
    elif what == 5:
        other = chance.choice(good)
        start = chance.randrange(len(other) + 1)
        made[at : at + length] = other[start : start + length]
    else:
        _replace_word(chance, made, at, chance.choice(tokens))


def _replace_word(chance: random.Random, made: bytearray, at: int, token: bytes) -> None:
    """Put a token in place of the letters and digits at a place, or between two of them."""
    end = at
    if chance.random() < 0.7:
        while end < len(made) and (made[end : end + 1].isalnum() or made[end] in b"_.-"):
            end += 1
    made[at:end] = token
