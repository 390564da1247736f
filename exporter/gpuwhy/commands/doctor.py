"""``gpuwhy doctor``: a short trial of watching, then every check."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time

from gpuwhy import doctor
from gpuwhy.commands import live
from gpuwhy.doctor_checks.host import Host
from gpuwhy.evidence.terminal import style_for
from gpuwhy.observe import pyspy
from gpuwhy.observe.observation import Observation
from gpuwhy.settings import Settings

log = logging.getLogger(__name__)

TRIAL_S = 8.0  # a job must live 2 s to count, its first stacks come 3 s later, both at leisure


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the findings; 1 if a check failed."""
    findings = doctor.examine(Host(seen=trial(settings), py_spy=sampler))
    if settings.json:
        print(json.dumps(doctor.as_json(findings), indent=2))
    else:
        sys.stdout.write(doctor.as_text(findings, style_for(sys.stdout)))
    return doctor.status(findings)


def sampler() -> tuple[str, str] | None:
    """Path and version of py-spy."""
    try:
        path = pyspy.executable()
        return str(path), pyspy.version(path)
    except pyspy.PySpyError as error:
        log.debug("py-spy", extra={"reason": str(error)})
        return None


def trial(settings: Settings, for_s: float = TRIAL_S) -> list[Observation]:
    """What the observer sees in a few seconds; nothing where it cannot even start."""
    seen: list[Observation] = []
    sight = live.Sight()
    end = time.monotonic() + for_s
    try:
        with (
            live.ending_on_sigterm(),
            live.Progress(sys.stderr, for_s, "looking at this host") as progress,
            live.observing(settings) as batches,
        ):
            for batch in batches:
                seen += batch
                sight.add(batch)
                left = end - time.monotonic()
                progress.show(for_s - left, sight)
                if left <= 0:
                    break
    except OSError as error:
        log.warning("the observer did not start", extra={"reason": str(error)})
    return seen
