"""``gpuwhy compare``: two traces, or two recordings, before and after a change."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from gpuwhy import values
from gpuwhy.commands.command import ANSWERED, NOTHING, USAGE, CommandError
from gpuwhy.evidence.terminal import style_for
from gpuwhy.settings import Settings


def positionals(parser: argparse.ArgumentParser) -> None:
    """The two files, and the limit for CI."""
    kinds = "a recording (.gpuwhy.gz), a profiler's trace, or a folder with the traces of all ranks"
    parser.add_argument("before", metavar="BEFORE", type=Path, help=kinds)
    parser.add_argument("after", metavar="AFTER", type=Path, help="the same after the change")
    parser.add_argument(
        "--fail-if-slower",
        metavar="SHARE",
        type=_share,
        help="exit status 1 where a step takes longer by more than this, such as 5%%",
    )


def _share(text: str) -> float:
    try:
        return float(values.ratio(0, 100)(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the comparison; 1 where it is slower than was allowed."""
    from gpuwhy.evidence.compare import compare, slower
    from gpuwhy.evidence.compare_samples import load
    from gpuwhy.evidence.compare_text import render
    from gpuwhy.evidence.traces.trace import TraceError
    from gpuwhy.observe.recording import RecordingError

    try:
        before, after = load(arguments.before), load(arguments.after)
    except (TraceError, RecordingError) as error:
        raise CommandError(str(error), USAGE) from error
    if before.form != after.form:
        raise CommandError(
            f"{arguments.before} is a {before.form} and {arguments.after} a {after.form}: a "
            "profiler slows the host, so compare two of one kind",
            USAGE,
        )
    made = compare(before, after)
    if settings.json:
        json.dump(made.as_json(), sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(render(made, style_for(sys.stdout)))
    limit: float | None = arguments.fail_if_slower
    if limit is None:
        return ANSWERED
    late = slower(made, limit)
    if late is None:
        raise CommandError("--fail-if-slower: no step time is known of these two", NOTHING)
    if late:
        print(f"gpuwhy: slower by more than {100 * limit:.3g} %: {made.summary}", file=sys.stderr)
    return NOTHING if late else ANSWERED
