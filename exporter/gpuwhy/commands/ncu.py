"""``gpuwhy ncu``: print the command that takes a job's kernels apart; start nothing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwhy.commands.command import ANSWERED, USAGE, CommandError
from gpuwhy.commands.nsys import job_argument, job_of
from gpuwhy.evidence import commands_to_print
from gpuwhy.settings import Settings

SUSPICIOUS = 4


def positionals(parser: argparse.ArgumentParser) -> None:
    """The job, and which kernels."""
    job_argument(parser)
    parser.add_argument(
        "--kernels",
        metavar="NAME",
        nargs="+",
        default=[],
        help="names of kernels, or parts of them",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        type=Path,
        help="take the kernels with the most time from a trace of the job",
    )
    parser.add_argument(
        "--launches",
        metavar="N",
        type=int,
        default=commands_to_print.LAUNCHES,
        help="how many launches to take apart (default: %(default)s)",
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the command; 1 where no job is in sight, 2 for a bad trace."""
    if arguments.launches < 1:
        raise CommandError("--launches: at least one", USAGE)
    kernels = [*arguments.kernels]
    if arguments.trace is not None:
        kernels += _suspicious(arguments.trace)
    job = job_of(arguments, settings)
    sys.stdout.write(commands_to_print.ncu(job, kernels, arguments.launches))
    return ANSWERED


def _suspicious(path: Path) -> list[str]:
    """Base names of the kernels with the most time, but for collectives, which need their peers."""
    from gpuwhy.evidence.traces import kernels
    from gpuwhy.evidence.traces.gpu import COLLECTIVE, gpus_of
    from gpuwhy.evidence.traces.read import read_trace
    from gpuwhy.evidence.traces.trace import TraceError

    try:
        rows = [row for t in read_trace(path) for g in gpus_of(t) for row in kernels.top({}, g)]
    except TraceError as error:
        raise CommandError(str(error), USAGE) from error
    rows.sort(key=lambda row: -row["time"])
    names = [kernels.base(row["name"]) for row in rows if not COLLECTIVE.search(row["name"])]
    return list(dict.fromkeys(names))[:SUSPICIOUS]
