"""``gpuwhy diagnose``: watch this host, or a recording, and print the verdict."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuwhy.commands import live
from gpuwhy.commands.command import ANSWERED, NOTHING, USAGE, CommandError
from gpuwhy.evidence import report
from gpuwhy.evidence.terminal import style_for
from gpuwhy.observe import playback
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import RecordingError
from gpuwhy.pipeline import Pipeline
from gpuwhy.settings import Settings

DEFAULT_S = 20.0
CHUNK = 500  # observations of a recording fed at a time
SPARE_S = 10  # kept beyond the window: the seconds before the first complete one

Verdict = dict[str, Any]


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the verdict; 1 where there is nothing to observe."""
    note: str | None = None
    refused: Mapping[str, str] | None = None
    if settings.recording:
        verdict, note = from_recording(settings.recording, settings.for_s)
    else:
        verdict, refused = from_host(settings)
    if settings.gpu is not None:
        verdict = only_gpu(verdict, settings.gpu)
    if not verdict["gpus"]:
        raise CommandError(nothing_seen(refused), NOTHING)
    if settings.json:
        print(json.dumps(verdict, indent=2, allow_nan=False))
    else:
        sys.stdout.write(report.render(verdict, style_for(sys.stdout), note))
    sys.stdout.flush()
    return ANSWERED


def from_host(settings: Settings) -> tuple[Verdict, Mapping[str, str]]:
    """Watch the jobs running here; the verdict over what was watched, and the words of the sources
    that saw nothing."""
    for_s = DEFAULT_S if settings.for_s is None else settings.for_s
    pipeline = Pipeline(keep_s=int(for_s) + SPARE_S)
    sight = live.watch(settings, pipeline, for_s)
    return pipeline.verdicts(for_s), sight.refused


def from_recording(paths: Sequence[Path], for_s: float | None) -> tuple[Verdict, str]:
    """Feed recordings as fast as possible; the verdict over all of them, or their last ``for_s``.

    Raises CommandError with status 2 for a file that is broken, foreign or too new.
    """
    names = ", ".join(str(path) for path in paths)
    pipeline = Pipeline(keep_s=7 * 86400)
    try:
        for chunk in _chunks(playback.play(paths)):
            _feed(pipeline, chunk, names)
        _understood(pipeline.finish, f"{names}: its last observations are")
    except RecordingError as error:
        raise CommandError(str(error), USAGE) from error
    return pipeline.verdicts(for_s), f"from {names}"


def only_gpu(verdict: Verdict, wanted: str) -> Verdict:
    """The verdict of one GPU, by index or UUID; raises CommandError naming those in sight."""
    gpus = [e for e in verdict["gpus"] if wanted in (str(e["gpu"]), e["uuid"])]
    if not gpus:
        seen = dict.fromkeys(f"{e['gpu']} ({e['uuid']})" for e in verdict["gpus"] if e["uuid"])
        raise CommandError(f"no GPU {wanted} in sight; seen: {', '.join(seen) or 'none'}", NOTHING)
    names = {entry["run"] for entry in gpus}
    runs = [run for run in verdict["runs"] if run["run"] in names]
    return {**verdict, "gpus": gpus, "runs": runs}


def nothing_seen(refused: Mapping[str, str] | None) -> str:
    """The message where neither a GPU nor a training process was seen. ``refused``: what the
    sources on this host said; None for a recording."""
    if refused is None:
        return "the recording holds neither a GPU nor a training process: nothing to diagnose"
    return (
        "nothing to observe: no GPU and no training process in sight.\n"
        "Start the job first and let it run for a few seconds; if it is running, "
        "`gpuwhy doctor` says what hides it (root sees most)" + live.in_words(refused)
    )


def _feed(pipeline: Pipeline, chunk: list[Observation], names: str) -> None:
    since, until = chunk[0].get("t"), chunk[-1].get("t")
    where = f"{names}: an observation between t={since} and t={until} is"
    _understood(lambda: pipeline.feed(chunk), where)


def _understood(feed: Callable[[], object], where: str) -> None:
    """Call ``feed``; what no signal can be made of, though its form was right, is bad input."""
    try:
        feed()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CommandError(
            f"{where} not of the form of a recording ({type(error).__name__}: {error})", USAGE
        ) from error


def _chunks(observations: Iterator[Observation]) -> Iterator[list[Observation]]:
    while chunk := list(itertools.islice(observations, CHUNK)):
        yield chunk
