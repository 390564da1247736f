"""Recordings as other jobs, cards and hosts would have made them, with the same truth.

Each change keeps what is wrong with the job and alters what a rule might have been keyed to without
anybody meaning it: names, paths, the watts and megahertz of one card, the moment of attaching.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gpuwhy.observe.observation import Observation
from gpuwhy.signals.phases import is_library

Change = Callable[[Iterable[Observation]], Iterator[Observation]]

LOST_STACKS = 0.3
LATER_S = 7.4
"""No whole number, so that seconds are cut elsewhere."""
SHORT_S = 23.0
"""Twenty whole seconds, and what the ledger waits for late observations."""
POWER = 0.6
CLOCK = 1410 / 1980
"""The maximum clock of an A100 to that of an H200."""
ACTIVITY = {"sm": 0.75, "occupancy": 0.7, "tensor": 0.5, "dram": 0.6}
COPIES = 2.0
"""The recorded hosts are virtual machines that copy pageable memory at 1.9 GB/s, which is slow."""
KEPT = ("gpu_info", "gpu_limits", "source")
"""Kinds that an observer sends as soon as it begins."""


def fewer_stacks(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Of the stacks, LOST_STACKS are torn or late by chance."""
    chance = random.Random(7)
    for o in observations:
        if o["kind"] != "stack" or chance.random() >= LOST_STACKS:
            yield o


def attached_later(observations: Iterable[Observation]) -> Iterator[Observation]:
    """The observer begins LATER_S into the recording."""
    start: float | None = None
    for o in observations:
        t = float(o["t"])
        start = t + LATER_S if start is None else start
        if o["kind"] in KEPT:
            yield {**o, "t": max(t, start)}
        elif t >= start:
            yield o


def short(observations: Iterable[Observation]) -> Iterator[Observation]:
    """The observer begins later, and ends after SHORT_S."""
    end: float | None = None
    for o in attached_later(observations):
        end = float(o["t"]) + SHORT_S if end is None else end
        if float(o["t"]) < end:
            yield o


_KEPT_NAME = re.compile(r"^__\w+__$|^<\w+>$|^main$")
"""What Python itself calls, and what means nothing."""


def renamed(observations: Iterable[Observation]) -> Iterator[Observation]:
    """The user's own functions and files have other names."""
    names: dict[str, str] = {}
    files: dict[str, str] = {}

    def other(name: str) -> str:
        return name if _KEPT_NAME.search(name) else names.setdefault(name, f"part_{len(names)}")

    def place(name: str, file: str) -> list[str]:
        if is_library(file):
            return [name, file]
        file = files.setdefault(file, f"/srv/work/code/unit_{len(files)}.py")
        return [".".join(other(part) for part in name.split(".")), file]

    for o in observations:
        if o["kind"] == "stack":
            o = {**o, "frames": [[*place(f[0], f[1]), *f[2:]] for f in o["frames"]]}
        elif o["kind"] == "locals":
            o = {**o, "values": [[*place(v[0], v[1]), *v[2:]] for v in o["values"]]}
        yield o


def another_run(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Run, script and command have other names."""
    for o in observations:
        if o["kind"] == "processes":
            o = {**o, "processes": [_rename(p) for p in o["processes"]]}
        yield o


def _rename(process: dict[str, Any]) -> dict[str, Any]:
    other = {"run": f"slurm-{len(str(process.get('run')))}-{str(process.get('run'))[::-1]}"}
    for name in ("script", "command"):
        if name in process:
            other[name] = "/srv/work/code/launch.py"
    return {**process, **other}


def plain_names(observations: Iterable[Observation]) -> Iterator[Observation]:
    """Python before 3.11: functions without their classes, installed elsewhere."""
    for o in observations:
        if o["kind"] == "stack":
            o = {**o, "frames": [[_plain(f[0]), _elsewhere(f[1]), *f[2:]] for f in o["frames"]]}
        elif o["kind"] == "locals":
            o = {**o, "values": [[_plain(v[0]), _elsewhere(v[1]), *v[2:]] for v in o["values"]]}
        yield o


def _plain(name: str) -> str:
    return name.rpartition(".")[2] or name


def _elsewhere(file: str) -> str:
    return re.sub(r"^.*/(python3\.)\d+/", r"/opt/conda/envs/job/lib/\g<1>10/", file)


def no_source_text(observations: Iterable[Observation]) -> Iterator[Observation]:
    """The source files of the job are out of the observer's reach."""
    for o in observations:
        yield {**o, "frames": [f[:3] for f in o["frames"]]} if o["kind"] == "stack" else o


def other_power(observations: Iterable[Observation]) -> Iterator[Observation]:
    """A card of POWER times the power, limits and all."""
    watts = ("power_w", "power_mean_w", "power_limit_w", "power_default_w", "power_max_w")
    for o in observations:
        if o["kind"] in ("gpu", "gpu_limits"):
            o = {**o, **{k: o[k] * POWER for k in (*watts, "energy_j") if k in o}}
        elif o.get("ring") == "power":
            o = {**o, "values": [None if v is None else v * POWER for v in o["values"]]}
        yield o


def other_clock(observations: Iterable[Observation]) -> Iterator[Observation]:
    """A card of CLOCK times the clock, maxima and all."""
    clocks = ("sm_mhz", "max_sm_mhz", "application_sm_mhz", "locked_sm_mhz")
    for o in observations:
        if o["kind"] in ("gpu", "gpu_limits"):
            o = {**o, **{k: round(o[k] * CLOCK) for k in clocks if k in o}}
        yield o


def other_activity(observations: Iterable[Observation]) -> Iterator[Observation]:
    """A larger card, of which the same kernels use less."""
    for o in observations:
        if o["kind"] == "gpm":
            o = {**o, **{k: o[k] * part for k, part in ACTIVITY.items() if k in o}}
        yield o


def faster_copies(observations: Iterable[Observation]) -> Iterator[Observation]:
    """A host whose copies, which take as long, move COPIES times as much."""
    for o in observations:
        if o["kind"] == "gpm":
            o = {**o, **{k: o[k] * COPIES for k in ("pcie_tx", "pcie_rx") if k in o}}
        yield o


def fewer_workers(observations: Iterable[Observation]) -> Iterator[Observation]:
    """No stack of every second worker."""
    for o in observations:
        if o["kind"] != "stack" or o["pid"] % 2 == 0 or not _of_worker(o):
            yield o


def _of_worker(stack: Observation) -> bool:
    return any(str(f[0]).endswith("_worker_loop") for f in stack["frames"])


CHANGES: dict[str, Change] = {
    "30 % of the stacks lost": fewer_stacks,
    "attached 7 s later": attached_later,
    "20 s in all": short,
    "other functions and files": renamed,
    "another run": another_run,
    "Python 3.10 elsewhere": plain_names,
    "no source text": no_source_text,
    "a card of 0.6 times the power": other_power,
    "a card of 0.7 times the clock": other_clock,
    "a card of which kernels use less": other_activity,
    "copies of twice the speed": faster_copies,
    "half of the workers unseen": fewer_workers,
}
"""What the page calls a change -> the change."""
