"""One run over two hosts: a recorded job of two ranks taken apart, each rank seen by the exporter
of its own host alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.alerting import replay

from gpuwhy.observe.observation import Observation

HOSTS = ("node-a", "node-b")
"""By rank."""
STEP_S = 0.284
"""A step of ``ddp_straggler``."""


def series(
    name: str,
    seconds: float,
    step: float = replay.SCRAPE_S,
    *,
    run: str | None = None,
    ras: bool = False,
) -> list[replay.Series]:
    """What both exporters are scraped for; the run under another name where one is given.

    ``ras``: NCCL answers on both hosts, which the recordings do not have.
    """
    found = []
    for rank, host in enumerate(HOSTS):
        target = {"host": host, "instance": f"{host}:9877"}
        for one in replay.replay([name], seconds, _Half(rank, run or name, ras).edit, step):
            found.append(replay.Series(one.name, {**one.labels, **target}, one.values))
    return found


class _Half:
    """Keeps what the host of one rank can see. Its GPU has a UUID of its own, as real ones have."""

    def __init__(self, rank: int, run: str, ras: bool) -> None:
        self._rank, self._run, self._uuid = rank, run, f"{HOSTS[rank]}-gpu"
        self._ras = ras
        self._pids: set[int] = set()
        self._ranks: dict[int, int] = {}  # rank -> pid

    def edit(self, o: Observation, since: float) -> Iterable[Observation]:
        if o["kind"] == "host" and self._ras and self._ranks:
            return [o, self._answer(float(o["t"]), since)]
        if o["kind"] == "processes":
            return [{**o, "processes": self._own(o["processes"])}]
        if o["kind"] in ("stack", "locals"):
            return [o] if o["pid"] in self._pids else []
        if "uuid" not in o:
            return [o]
        own = {**o, "uuid": self._uuid, **({"gpu": 0} if o["kind"] == "gpu_info" else {})}
        return [own] if str(o["uuid"]).endswith(f"-{self._rank}") else []

    def _own(self, processes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rank and its children."""
        self._ranks = {p["rank"]: p["pid"] for p in processes if "rank" in p}
        ranks = {pid for rank, pid in self._ranks.items() if rank == self._rank}
        self._pids = {p["pid"] for p in processes if ranks & {p["pid"], p["ppid"]}}
        there = (p for p in processes if p["pid"] in self._pids)
        gpus = {"gpus": [self._uuid]}
        return [{**p, "run": self._run, **(gpus if "gpus" in p else {})} for p in there]

    def _answer(self, t: float, since: float) -> Observation:
        """As NCCL 2.28 told it of such a job: each step has 20 collectives, and the rank that
        waits has begun those of the next step."""
        begun = 20 * int(since / STEP_S)
        ranks = [
            {
                "rank": rank,
                "host": host,
                "pid": self._ranks[rank],
                "gpu": 0,
                "state": "RUNNING",
                "counts": {"AllReduce": begun + 20 * (rank == 0)},
                "missing": False,
            }
            for rank, host in enumerate(HOSTS)
        ]
        communicator = {"hash": "0x1", "size": len(HOSTS), "ranks": ranks}
        return {"t": t, "kind": "nccl", "port": "28028", "communicators": [communicator]}
