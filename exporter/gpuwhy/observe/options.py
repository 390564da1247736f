"""What the observer process is told, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict, cast

NAMES = ("nvml", "processes", "stacks", "host", "nccl_ras", "infiniband")
"""The sources, by the name under which one can be left out."""


class Options(TypedDict, total=False):
    """All are optional."""

    pace: Literal["steady", "close"]  # stacks: for months, or for a diagnosis of seconds
    max_overhead: float | None  # share of one core for each rank, for stacks; None: by the pace
    sources: list[str]  # only these; all where absent
    proc: str  # where /proc, /sys and /sys/fs/cgroup are mounted
    sys: str
    cgroup: str


def options_of(given: Mapping[str, Any] | object | None) -> Options:
    """Options from a mapping, or from an object with attributes of their names (settings)."""
    names = Options.__annotations__
    if given is None:
        return {}
    if isinstance(given, Mapping):
        unknown = given.keys() - names.keys()
        if unknown:
            raise ValueError(f"the observer has no option {', '.join(sorted(unknown))}")
        return cast(Options, dict(given))
    return cast(
        Options, {n: getattr(given, n) for n in names if getattr(given, n, None) is not None}
    )
