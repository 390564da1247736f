"""Inputs that went wrong: files damaged by chance, and JSON whose values are not what they were.

Every input follows from its seed, so that one that fails can be made again.
"""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, -(2**63), 10**30, 1e308, -1e-300, float("inf"), float("nan"),
    "", "x", "7", "stream 7", "\x00\n\ud800", [], {}, [[]], {"a": {}}, "Z" * 3000,
)  # fmt: skip
PIECES = (
    b"", b"\x00", b"\xff\xfe", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"-", b"inf",
    b"null", b"9" * 40, b"[" * 200, b"\n", b"\x1f\x8b", b"\xe4",
)  # fmt: skip


def damaged(seed: int, data: bytes) -> bytes:
    """Bytes cut, doubled, overwritten or put in, one to four times; now and then packed again."""
    chance = random.Random(seed)
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(made) + 1)
        length = chance.choice((1, 1, 2, 8, 64, 1000))
        what = chance.randrange(5)
        if what == 0:
            del made[at : at + length]
        elif what == 1:
            del made[at:]
        elif what == 2:
            made[at:at] = made[at : at + length]
        elif what == 3:
            made[at : at + length] = chance.randbytes(length)
        else:
            made[at : at + chance.randrange(3)] = chance.choice(PIECES)
    return gzip.compress(bytes(made), 1) if chance.random() < 0.05 else bytes(made)


def changed(seed: int, trace: dict[str, Any]) -> bytes:
    """A trace in which one to five values are others, or absent; still JSON."""
    chance = random.Random(seed)
    made = json.loads(json.dumps(trace))
    for _ in range(chance.randint(1, 5)):
        _change(chance, made)
    return json.dumps(made).encode("utf-8", "surrogatepass")


def _change(chance: random.Random, made: Any) -> None:
    place = made
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        if not keys:
            return
        key = chance.choice(list(keys))
        value = place[key]
        if isinstance(value, dict | list) and value and chance.random() < 0.85:
            place = value
        elif chance.random() < 0.15:
            del place[key]
            return
        elif isinstance(value, int | float) and chance.random() < 0.5:
            place[key] = _near(chance, value)
            return
        else:
            place[key] = copy.deepcopy(chance.choice(ODD))  # else a later change is made in ODD
            return


def _near(chance: random.Random, value: float) -> float:
    factors: tuple[Callable[[], float], ...] = (
        lambda: -value, lambda: value * chance.choice((0, 0.5, 2, 1000)),
        lambda: value + chance.choice((-1, 1, 1000, -1000)), lambda: value + chance.random(),
    )  # fmt: skip
    return chance.choice(factors)()
