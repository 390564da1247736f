"""The numbers of a trace behind each cause, for a person to check in the timeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuwhy.evidence.traces.facts import Facts
from gpuwhy.evidence.traces.gaps import PARTS
from gpuwhy.evidence.traces.units import best_unit

Item = dict[str, Any]
"""{"text", "value", "unit", "source"}."""

SOURCE = "trace"


class _Items(list[Item]):
    def note_time(self, text: str, seconds: float | None) -> None:
        """Add a time in the unit in which it is best told."""
        if seconds is not None:
            value, unit = best_unit(seconds)
            self.note(text, value, unit)

    def note(self, text: str, value: float | None, unit: str) -> None:
        """Add an item whose value is known."""
        if value is not None:
            self.append(
                {"text": text, "value": round(float(value), 6), "unit": unit, "source": SOURCE}
            )


def evidence_for(account: str, facts: Facts) -> list[Item]:
    """Evidence for one cause; how busy the GPU was comes last in each."""
    items = _Items()
    _BY_ACCOUNT[account](facts, items)
    busy = 1.0 - facts.gpu.idle.total / facts.gpu.window.length
    items.note("GPU busy with kernels or copies", busy, "ratio")
    return items


def _part(facts: Facts, part: str) -> tuple[float, int, float]:
    """(share of the window, gaps, longest in s) of a part of the idle time."""
    amount = facts.gpu.gaps.amounts[:, PARTS.index(part)]
    longest = float(amount.max()) / 1e9 if len(amount) else 0.0
    return float(amount.sum()) / facts.gpu.window.length, int((amount > 0).sum()), longest


def _data(facts: Facts, items: _Items) -> None:
    share, gaps, longest = _part(facts, "data")
    items.note("GPU idle while the host waits for the next batch", share, "ratio")
    items.note("such waits", gaps, "waits")
    items.note_time("longest of them", longest)


def _launch(facts: Facts, items: _Items) -> None:
    share, gaps, _ = _part(facts, "dispatch")
    items.note("GPU idle until the host's next launch", share, "ratio")
    items.note("such gaps", gaps, "gaps")
    items.note("kernels shorter than 5 us", facts.tiny_ratio, "ratio")
    items.note("launches a second", facts.launches.per_second, "1/s")
    items.note_time("from one launch to the next (median)", facts.launches.period)
    items.note("launches that found the queue empty", facts.launches.empty, "ratio")


def _host(facts: Facts, items: _Items) -> None:
    for part, words in (
        ("python", "GPU idle while Python runs and launches nothing"),
        ("synchronize", "GPU idle after the host synchronised or allocated"),
        ("logging", "GPU idle while the host logs"),
        ("garbage-collection", "GPU idle while garbage is collected"),
    ):
        share, _, longest = _part(facts, part)
        if share >= 0.005:
            items.note(words, share, "ratio")
            items.note_time("longest of them", longest)
    _late(facts, items)


def _late(facts: Facts, items: _Items) -> None:
    if facts.straggler:
        items.note_time("this rank comes to collectives later than the first by", facts.late_s)
        items.note("other ranks that wait for it", facts.peers, "ranks")


def _comm(facts: Facts, items: _Items) -> None:
    share, _, longest = _part(facts, "comm")
    if share >= 0.005:
        items.note("GPU idle while the host is in a collective", share, "ratio")
        items.note_time("longest of them", longest)
    exposed = facts.gpu.exposed_comm.total / facts.gpu.window.length
    if exposed:
        items.note("in collectives that nothing else hides", exposed, "ratio")
    items.note("of it waiting for a later rank, at most", facts.waited_ratio, "ratio")
    if facts.gpu.comm.total:
        hidden = 1.0 - facts.gpu.exposed_comm.total / facts.gpu.comm.total
        items.note("collectives' time under the job's own kernels", hidden, "ratio")
    for row in facts.collectives[:2]:
        items.note_time(f"time in {row['collective']}", row["time"])


def _copy(facts: Facts, items: _Items) -> None:
    exposed = facts.gpu.exposed_copies.total / facts.gpu.window.length
    items.note("in copies, without any kernel", exposed, "ratio")
    for row in facts.copies[:2]:
        name = f"{row['way']}, {row['memory']}" if "memory" in row else row["way"]
        items.note_time(f"time in copies {name}", row["time"])
        items.note(f"copies {name}", row["copies"], "copies")
        items.note(f"rate of copies {name}", row.get("bandwidth"), "bytes/s")


_BY_ACCOUNT: dict[str, Callable[[Facts, _Items], None]] = {
    "data": _data,
    "launch": _launch,
    "host": _host,
    "comm": _comm,
    "copy": _copy,
}
"""The causes that a trace can show."""

CAUSES = tuple(_BY_ACCOUNT)
