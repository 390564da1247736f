"""Several recordings as the GPUs of one host: indices, UUIDs, PIDs and runs kept apart.

Pure rewriting of observations; what is alone keeps its names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import Header

PIDS_APART = 5_000_000
"""Added to the PIDs of each further recording: Linux has none above 4,194,304."""

HOST_KINDS = frozenset(("host", "network_port"))
"""Kinds of the host as a whole: those of the first recording stand for all."""

TABLE_HOLDS_S = 5.0
"""A host has one process table: each recording's part of it holds this long."""


class Names:
    """What is taken by the recordings so far."""

    def __init__(self) -> None:
        self.gpus = 0
        self.uuids: set[str] = set()
        self.runs: dict[str, int] = {}  # run -> number of the recording that has it
        self.tables: dict[int, Observation] = {}  # last process table, by number of the recording

    def host_table(self, t: float) -> list[dict[str, Any]]:
        """The processes of all recordings, of those that have lately told theirs."""
        return [
            process
            for _, table in sorted(self.tables.items())
            if t - float(table["t"]) <= TABLE_HOLDS_S
            for process in table["processes"]
        ]


class Relabel:
    """Rewrites the observations of one recording, the ``number``-th (from 0) of several."""

    def __init__(self, number: int, header: Header, names: Names) -> None:
        self._number = number
        self._names = names
        self._first_gpu = names.gpus
        self._uuids: dict[str, str] = {}
        self._indices: dict[int, int] = {}
        for card in header["hardware"].get("gpus", []):
            self._uuid(str(card["uuid"]))
            self._index(int(card.get("gpu", len(self._indices))))

    def __call__(self, observation: Observation) -> list[Observation]:
        """The observation under its new names; none where another recording stands for it."""
        kind = observation["kind"]
        if kind in HOST_KINDS and self._number > 0:
            return []
        out = {name: self._value(name, value) for name, value in observation.items()}
        if kind == "sm_share":
            out["shares"] = [[self._pid(share[0]), *share[1:]] for share in out["shares"]]
        if kind == "processes":
            self._names.tables[self._number] = out
            out = {**out, "processes": self._names.host_table(float(out["t"]))}
        if kind == "cgroup":
            out["path"] = self._path(out["path"])
        if kind == "source" and not {"uuid", "pid"} & out.keys() and self._number > 0:
            return self._source(out)
        return [out]

    def _source(self, said: Observation) -> list[Observation]:
        """What a further recording says of a source holds for its own GPUs alone."""
        return [{**said, "uuid": uuid} for uuid in self._uuids.values()] if not said["up"] else []

    def _value(self, name: str, value: Any) -> Any:
        change = _CHANGES.get(name)
        if change is not None:
            return change(self, value)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [{k: self._value(k, v) for k, v in item.items()} for item in value]
        return value

    def _pid(self, pid: int) -> int:
        return pid + self._number * PIDS_APART if pid else pid

    def _pids(self, pids: list[int]) -> list[int]:
        return [self._pid(pid) for pid in pids]

    def _uuid(self, uuid: str) -> str:
        known = self._uuids.get(uuid)
        if known is None:
            taken = uuid in self._names.uuids
            known = self._uuids[uuid] = f"{uuid}-{self._number}" if taken else uuid
            self._names.uuids.add(known)
        return known

    def _uuid_list(self, uuids: list[str]) -> list[str]:
        return [self._uuid(uuid) for uuid in uuids]

    def _index(self, index: int) -> int:
        known = self._indices.get(index)
        if known is None:
            known = self._indices[index] = self._names.gpus
            self._names.gpus += 1
        return known

    def _run(self, run: str) -> str:
        owner = self._names.runs.setdefault(run, self._number)
        return run if owner == self._number else f"{run} ({self._number + 1})"

    def _path(self, path: str) -> str:
        return path if self._number == 0 else f"/recording-{self._number + 1}{path}"


_CHANGES: dict[str, Callable[[Relabel, Any], Any]] = {
    "pid": Relabel._pid,
    "ppid": Relabel._pid,
    "rank_pid": Relabel._pid,
    "pids": Relabel._pids,
    "uuid": Relabel._uuid,
    "parent_uuid": Relabel._uuid,
    "gpus": Relabel._uuid_list,
    "gpu": Relabel._index,
    "run": Relabel._run,
    "cgroup": Relabel._path,
}
