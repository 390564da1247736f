"""``python -m tests.fuzz.fuzz PARSER [--inputs N] [--seed S]``: damaged inputs without a defect.

A defect is an exception that is no refusal, an answer that takes a second of CPU, or one that
takes more memory than the process may have. The input is kept under the name that is told.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time

from tests.fuzz import mutate
from tests.fuzz.targets import PARSERS, Parser

SLOW_S = 1.0
MOST_MEMORY = 2 << 30


class DefectError(AssertionError):
    """What went wrong, and with which input."""


def fuzz(name: str, count: int, seed: int) -> float:
    """Try so many inputs; the longest time that one took, in seconds of CPU. Raises DefectError."""
    parser = PARSERS[name]
    slowest = 0.0
    tried = itertools.islice(mutate.inputs(seed, parser.inputs(name), parser.values), count)
    with parser.around():
        for data in tried:
            slowest = max(slowest, attempt(parser, name, data))
    return slowest


def attempt(parser: Parser, name: str, data: bytes) -> float:
    """Seconds of CPU that one input took, within ``around``. Raises DefectError."""
    began = time.thread_time()
    try:
        parser.run(data)
    except parser.refusals:
        pass
    except Exception as error:
        raise DefectError(f"{name}: {type(error).__name__}: {error}: {data!r}") from error
    spent = time.thread_time() - began
    if spent > SLOW_S:
        raise DefectError(f"{name}: {spent:.1f} s of CPU: {data!r}")
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=PARSERS)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    began, cpu = time.monotonic(), time.process_time()
    slowest = fuzz(asked.name, asked.inputs, asked.seed)
    print(
        f"{asked.name}: {asked.inputs} inputs, no defect; {time.process_time() - cpu:.0f} s of CPU,"
        f" {time.monotonic() - began:.0f} s; slowest {slowest * 1000:.0f} ms"
    )


if __name__ == "__main__":
    main()
