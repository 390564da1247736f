"""``gpuwhy profile``: a flame graph of one rank and its workers."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpuwhy.commands import live
from gpuwhy.commands.command import ANSWERED, NOTHING, USAGE, CommandError
from gpuwhy.evidence.profile import ProfileError, format_of, profile
from gpuwhy.observe.observation import Observation
from gpuwhy.settings import Settings

DEFAULT_S = 30.0
FIND_S = 10.0  # to find the job: it must have lived 2 s, and the driver must have answered
SETTLE_S = 1.5  # after the first rank: the others of the job, and the GPUs that they hold

Process = dict[str, Any]


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write FILE; 1 if there is nothing to profile or py-spy is refused, 2 for a bad FILE."""
    path: Path = arguments.file
    seconds = DEFAULT_S if settings.for_s is None else settings.for_s
    try:
        format_of(path)
        pid = settings.pid if settings.pid is not None else find_rank(settings)
        progress = live.Progress(sys.stderr, seconds, f"profiling {pid}")
        with live.ending_on_sigterm(), progress:
            stacks = profile(
                pid, seconds, path, progress=lambda done, _: progress.show(done, "waits included")
            )
    except ProfileError as error:
        raise CommandError(str(error), USAGE if error.usage else NOTHING) from error
    print(f"{path}: {stacks} stacks of process {pid} and its children", file=sys.stderr)
    return ANSWERED


def find_rank(settings: Settings) -> int:
    """The process to profile: the one rank in sight, or the one on ``--gpu``.

    Raises CommandError where there is none (status 1), or several to choose from (status 2).
    """
    with live.observing(settings) as batches:
        ranks, indices = ranks_in_sight(batches)
    if settings.gpu is not None:
        ranks = [rank for rank in ranks if _holds(rank, settings.gpu, indices)]
    where = "" if settings.gpu is None else f" on GPU {settings.gpu}"
    if not ranks:
        raise CommandError(
            f"no training process in sight{where}; --pid P takes any Python process, and "
            "`gpuwhy doctor` says what may hide a job",
            NOTHING,
        )
    if len(ranks) > 1:
        listed = ", ".join(f"{rank['pid']} ({rank.get('script', 'python')})" for rank in ranks)
        raise CommandError(f"several ranks in sight{where}: choose by --pid: {listed}", USAGE)
    return int(ranks[0]["pid"])


def ranks_in_sight(
    batches: Iterable[list[Observation]], clock: live.Clock = time.monotonic
) -> tuple[list[Process], dict[str, str]]:
    """The ranks of the jobs here, and the index of each GPU by UUID."""
    ranks: list[Process] = []
    indices: dict[str, str] = {}
    end = clock() + FIND_S
    for batch in batches:
        for seen in batch:
            if seen["kind"] == "gpu_info":
                indices[seen["uuid"]] = str(seen.get("gpu", ""))
            elif seen["kind"] == "processes":
                found = [one for one in seen["processes"] if one.get("role") == "rank"]
                if found and not ranks:
                    end = min(end, clock() + SETTLE_S)
                ranks = found
        if clock() >= end:
            break
    return ranks, indices


def _holds(rank: Process, gpu: str, indices: dict[str, str]) -> bool:
    return any(gpu in (uuid, indices.get(uuid)) for uuid in rank.get("gpus", []))
