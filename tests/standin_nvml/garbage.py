"""An NvmlSource on a driver whose answers are garbage: right calls, wrong values.

    python garbage.py FIRST_SEED SEEDS      (with LD_LIBRARY_PATH at the stand-in)

Half of all answers are changed on their way out of the bindings: numbers beyond any meaning, NaN,
names with control characters, lists that are empty, reversed or too long. Whatever then comes out
of the source must be an observation as the contract has it.
"""

from __future__ import annotations

import ctypes
import math
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from gpuwhy.observe import form, nvml_library, wire
from gpuwhy.observe.nvml import NvmlSource

POLLS = 12
MOST_S = 1.0
MOST_MEMORY = 2 << 30
NUMBERS = (0, 1, -1, 7, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**64 - 1, -(2**63))
FLOATS = (math.nan, math.inf, -math.inf, -1.0, 1e308, 5e-324)
TEXTS = ("", "x" * 65536, "a\nb", "\x1b[31m", "\u202e", "\udcff", 'a"b', "N/A")
HANDLES = ("Handle", "Init", "Shutdown", "ErrorString", "EventSet", "SampleAlloc", "SampleFree")

Chance = random.Random


def garbled(chance: Chance, value: Any) -> Any:
    """Another value of the same type, every other time."""
    if chance.random() < 0.5 or value is None:
        return value
    if isinstance(value, bool | int):
        return chance.choice((*NUMBERS, chance.getrandbits(64), chance.getrandbits(16)))
    if isinstance(value, float):
        return chance.choice((*FLOATS, chance.uniform(-1e6, 1e6)))
    if isinstance(value, str):
        return chance.choice(TEXTS)
    if isinstance(value, bytes):
        return chance.randbytes(chance.choice((0, 1, 40)))
    if isinstance(value, list | tuple):
        made = [garbled(chance, one) for one in value]
        if isinstance(value, tuple) or all(isinstance(one, int) for one in value):
            return type(value)(made)  # of a fixed length, made by the bindings
        return chance.choice((made, [], made[::-1], made * 50, made[:1]))
    if isinstance(value, ctypes.Structure | ctypes.Union):
        spoil(chance, value)
    elif hasattr(value, "__dict__"):  # the bindings' copies of structures
        for name, member in vars(value).items():
            setattr(value, name, garbled(chance, member))
    return value


def spoil(chance: Chance, value: Any) -> None:
    """Numbers of a structure, in place."""
    for name, *_ in value._fields_:
        member = getattr(value, name)
        if isinstance(member, int):
            setattr(value, name, garbled(chance, member) % 2**64)
        elif isinstance(member, float):
            setattr(value, name, garbled(chance, member))
        elif isinstance(member, ctypes.Structure | ctypes.Union):
            spoil(chance, member)


def wrapped(chance: Chance, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        answer = real(*arguments)
        if name == "nvmlGpmMetricsGet":
            for slot in range(arguments[0].numMetrics):
                metric = arguments[0].metrics[slot]
                metric.value = garbled(chance, metric.value)
                metric.nvmlReturn = chance.choice((0, 0, 0, 3, 999))
        return garbled(chance, answer)

    return call


def bindings() -> dict[str, Callable[..., Any]]:
    """Every function of the bindings that answers with a value."""
    return {
        name: function
        for name, function in vars(pynvml).items()
        if name.startswith("nvml") and callable(function) and not isinstance(function, type)
        and not any(word in name for word in HANDLES)
    }  # fmt: skip


def tried(seed: int, real: dict[str, Callable[..., Any]]) -> None:
    """One life of a source. Raises AssertionError, or whatever the source lets out."""
    chance = random.Random(seed)
    for name, function in real.items():
        setattr(nvml_library.pynvml, name, wrapped(chance, name, function))
    source = NvmlSource(proc=Path("/proc"), pci=Path("/none"))
    now = time.time()
    for _ in range(POLLS):
        now += chance.choice((0.5, 0.5, 5.0, 61.0))
        began = time.thread_time()
        for seen in source.poll(now):
            wire.encode(seen)
            assert form.wrong(seen) is None, f"{form.wrong(seen)}: {str(seen)[:500]}"
        spent = time.thread_time() - began
        assert spent < MOST_S, f"{spent:.1f} s of CPU"
    source.close()


def main(first: int, seeds: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    real = bindings()
    for seed in range(first, first + seeds):
        try:
            tried(seed, real)
        except BaseException:
            print(f"seed {seed}", file=sys.stderr)
            raise
    print(f"{seeds} lives")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
