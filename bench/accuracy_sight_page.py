"""The part of docs/accuracy.md about jobs that are seen less well, or otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bench.accuracy_degraded import Sight
from bench.accuracy_found import Found
from bench.accuracy_table import Table, table

Outcomes = Sequence[tuple[Sight, Counter[str]]]

BLIND = """The same recordings with sources taken away. What cannot be told must be `unknown` and
name a signal that is missing.

"""

PAIRS = """Every two of these at a time: GPM, its SM activity alone, its PCIe traffic alone, stacks,
the source text of their lines, process list, SM share, cgroup files, schedstat (how long a thread
waited for a CPU), affinity, NCCL's RAS, the card's limits, utilisation. The worst ten, by wrong
answers and then by right ones.

"""

CHANGED = """The same recordings as other cards and hosts would have given them, and by other names:
no verdict may hang on a number or a name of these jobs. What only a name tells cannot be told
without it: that the Python of `c58` makes its batches.

"""


def goals(found: Found) -> Table:
    """Rows of the table of goals; none of what was not looked at."""
    if not found.blind:
        return
    first, counts = found.blind[0]
    yield [f"right: {first.name}", "80 %", _share(counts, "right")]
    for name, some in (("any", found.blind), ("any two of", found.blind_pairs)):
        worst, most = max(some, key=lambda b: b[1]["wrong"] / b[1].total())
        reached = _share(most, "wrong") + (f" ({worst.name})" if most["wrong"] else "")
        yield [f"wrong under {name} degraded sight", "1 %", reached]
    total = sum((counts for _, counts in found.changed), Counter[str]())
    yield ["right on other cards and hosts, by other names", "all", _share(total, "right")]


def sections(found: Found) -> Iterator[str]:
    if not found.blind:
        return
    yield "## Degraded sight\n\n" + BLIND + _blind(found.blind)
    yield f"### Two at a time\n\n{PAIRS}" + _pairs(found.blind_pairs)
    yield "## The same jobs otherwise\n\n" + CHANGED + _changed(found.changed)


HEADS = ["windows", "right", "`unknown`, names what is missing", "`unknown`, does not", "wrong"]


def _blind(blind: Outcomes) -> str:
    return table(["seen", *HEADS], [[sight.name, *_cells(counts)] for sight, counts in blind])


def _pairs(blind: Outcomes) -> str:
    ordered = sorted(blind, key=lambda b: (-b[1]["wrong"], b[1]["right"], b[0].name))
    rows = [[sight.name, *_cells(counts)] for sight, counts in ordered[:10]]
    total = sum((counts for _, counts in blind), Counter[str]())
    return table(["without", *HEADS], [*rows, [f"all {len(blind)}", *_cells(total)]])


def _changed(changed: Sequence[tuple[str, Counter[str]]]) -> str:
    names = ("right", "abstained", "wrong")
    rows = [
        [name, str(counts.total()), *(_share(counts, n) for n in names)] for name, counts in changed
    ]
    return table(["otherwise", "windows", "right", "`unknown`", "wrong"], rows)


def _cells(counts: Counter[str]) -> list[str]:
    names = ("right", "abstained", "silent", "wrong")
    return [str(counts.total()), *(_share(counts, name) for name in names)]


def _share(counts: Counter[str], name: str) -> str:
    return f"{counts[name] / counts.total():.1%}"
