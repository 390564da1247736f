"""``gpuwhy record``: keep what is observed on this host in a file."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from gpuwhy.commands import live
from gpuwhy.commands.command import ANSWERED, NOTHING, USAGE, CommandError
from gpuwhy.observe.describe import describe
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import Recorder, RecordingError
from gpuwhy.settings import Settings

NOTHING_SEEN = (
    "nothing was recorded: no GPU and no training process in sight.\n"
    "Start the job first; if it is running, `gpuwhy doctor` says what hides it"
)


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Write FILE until ``--for`` has passed, or Ctrl-C, or SIGTERM; 1 if nothing was in sight."""
    path: Path = arguments.file
    refuse_bad_target(path)
    sight = live.Sight()
    try:
        with live.ending_on_sigterm():
            recorder = Recorder(path, describe())
            try:
                _record(recorder, settings, sight)
            except BaseException:
                recorder.discard()
                raise
            if sight.empty:
                recorder.discard()
                raise CommandError(NOTHING_SEEN + live.in_words(sight.refused), NOTHING)
            recorder.close()
    except RecordingError as error:
        raise CommandError(str(error), NOTHING) from error
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB, {sight}", file=sys.stderr)
    return ANSWERED


def refuse_bad_target(path: Path) -> None:
    """Raises CommandError with status 2 where FILE could not be written, before any watching."""
    folder = path.parent
    if path.is_dir():
        raise CommandError(f"{path} is a folder: name a file in it, NAME.gpuwhy.gz", USAGE)
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is a pipe or a device: name a file, NAME.gpuwhy.gz", USAGE)
    if not folder.is_dir():
        raise CommandError(f"{folder} is no folder: make it, or choose another FILE", USAGE)
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{folder} cannot be written: choose another FILE", USAGE)


def _record(recorder: Recorder, settings: Settings, sight: live.Sight) -> None:
    """Ctrl-C is the wish to end: what was seen until then is kept."""
    progress = live.Progress(sys.stderr, settings.for_s, "recording")
    with progress, live.observing(settings) as batches:
        try:
            keep(batches, recorder.write, settings.for_s, sight, progress)
        except KeyboardInterrupt:
            return


def keep(
    batches: Iterable[list[Observation]],
    write: Callable[[Observation], None],
    for_s: float | None,
    sight: live.Sight,
    progress: live.Progress,
    clock: live.Clock = time.monotonic,
) -> None:
    """Write batches for ``for_s`` seconds from the first sight of a GPU or a job on."""
    begun = clock()
    since: float | None = None
    for batch in batches:
        for observation in batch:
            write(observation)
        sight.add(batch)
        now = clock()
        if since is None and not sight.empty:
            since = now
        since_s = now - (begun + live.NOTHING_AFTER_S if since is None else since)
        progress.show(since_s, sight)
        if for_s is not None and since_s >= for_s:
            return
