"""``gpuwhy nsys``: print the command that records a timeline of a job; start nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from gpuwhy import values
from gpuwhy.commands.command import ANSWERED, NOTHING, CommandError
from gpuwhy.evidence import commands_to_print
from gpuwhy.evidence.job_command import Job, JobCommandError, of_command, of_process
from gpuwhy.settings import Settings


def positionals(parser: argparse.ArgumentParser) -> None:
    """The job, and when to record."""
    job_argument(parser)
    parser.add_argument(
        "--delay",
        metavar="T",
        type=_parsed(values.duration(0, 86400)),
        default=commands_to_print.DEFAULT_DELAY_S,
        help="begin this long after the start, past the warm-up (default: 30s)",
    )
    parser.add_argument(
        "--steps",
        metavar="A-B",
        type=_parsed(commands_to_print.steps),
        help="record these steps instead, which the script then has to mark",
    )


def job_argument(parser: argparse.ArgumentParser) -> None:
    """The job's command, after ``--``."""
    parser.add_argument(
        "job",
        metavar="-- COMMAND",
        nargs=argparse.REMAINDER,
        help="the job's command; without it, that of the job running here (--pid, --gpu)",
    )


def _parsed(parse: Callable[[str], object]) -> Callable[[str], object]:
    """A parser of ``values`` in the form that argparse wants."""

    def convert(text: str) -> object:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the command; 1 where no job is in sight."""
    job = job_of(arguments, settings)
    for_s = commands_to_print.DEFAULT_FOR_S if settings.for_s is None else settings.for_s
    sys.stdout.write(commands_to_print.nsys(job, for_s, arguments.delay, arguments.steps))
    return ANSWERED


def job_of(arguments: argparse.Namespace, settings: Settings) -> Job:
    """The job given after ``--``, or the one that runs here."""
    command = [*arguments.job]
    if command[:1] == ["--"]:
        command = command[1:]
    if command:
        return of_command(command)
    from gpuwhy.commands.profile import find_rank

    try:
        return of_process(settings.pid if settings.pid is not None else find_rank(settings))
    except JobCommandError as error:
        raise CommandError(str(error), NOTHING) from error
