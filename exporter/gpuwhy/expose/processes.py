"""``/api/v1/processes``: the processes of the jobs in sight, as the last look found them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuwhy.expose.view import View

MOST = 2000
"""Processes listed; ranks come first."""

FIELDS = (
    "pid",
    "ppid",
    "start",
    "role",
    "rank_pid",
    "run",
    "rank",
    "local_rank",
    "world_size",
    "name",
    "user",
    "python",
    "state",
    "threads",
    "rss",
    "affinity",
    "numa",
    "cpu",
    "run_delay",
    "read_bytes",
    "write_bytes",
    "read_chars",
    "voluntary",
    "involuntary",
    "container",
    "pod",
    "namespace",
    "gpus",
    "script",
    "command",
)
"""What leaves the host: named here one by one, so that nothing new does so unseen. Command lines
were trimmed, and secrets in them masked, where they were read."""

_FIRST = {"rank": 0, "tenant": 1, "launcher": 2, "worker": 3}


def listing(view: View) -> dict[str, Any]:
    """``{"schema", "t", "recorded", "processes", "left_out"}``; ``t`` null where none is fresh."""
    table = view.fact("processes")
    found = sorted(table.get("processes", ()), key=_order)
    return {
        "schema": 1,
        "t": table.get("t"),
        "recorded": view.about.recorded,
        "processes": [{f: process[f] for f in FIELDS if f in process} for process in found[:MOST]],
        "left_out": len(found[MOST:]),
    }


def _order(process: Mapping[str, Any]) -> tuple[int, str, int]:
    place = _FIRST.get(str(process.get("role")), len(_FIRST))
    return place, str(process.get("run", "")), int(process["pid"])
