"""The PIDs in an answer of NCCL's RAS -> PIDs of this host.

A rank tells the PID that it has itself. In a container that is one of the container's own PID
namespace, and on another host it says nothing about the processes here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple


class RankHere(NamedTuple):
    """A rank on this host. ``own_pid`` is the PID that it has in its own PID namespace."""

    pid: int
    own_pid: int
    rank: int | None


def place(
    communicators: Iterable[Mapping[str, Any]], ranks: Iterable[RankHere], ours: Collection[str]
) -> list[dict[str, Any]]:
    """The communicators with PIDs of this host; a rank that is elsewhere, or of which several
    processes here may be meant, has none. ``ours``: this host's addresses; without any, every rank
    may be here."""
    by_pid: dict[int, list[RankHere]] = {}
    for rank in ranks:
        by_pid.setdefault(rank.own_pid, []).append(rank)
    return [
        {**communicator, "ranks": [_placed(r, by_pid, ours) for r in communicator["ranks"]]}
        for communicator in communicators
    ]


def _placed(
    said: dict[str, Any], by_pid: Mapping[int, list[RankHere]], ours: Collection[str]
) -> dict[str, Any]:
    if "pid" not in said:
        return said
    rest = {name: value for name, value in said.items() if name != "pid"}
    if ours and "host" in said and said["host"] not in ours:
        return rest
    meant = by_pid.get(said["pid"])
    if meant is None:  # a process that is not known to be a rank (yet)
        return said
    if len(meant) > 1:
        meant = [one for one in meant if one.rank == said["rank"]]
    return {**said, "pid": meant[0].pid} if len(meant) == 1 else rest
