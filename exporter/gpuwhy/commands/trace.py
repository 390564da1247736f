"""``gpuwhy trace``: a profiler's files, told in the vocabulary of the ledger."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpuwhy.commands.command import ANSWERED, NOTHING, USAGE, CommandError
from gpuwhy.evidence.terminal import style_for
from gpuwhy.settings import Settings


def positionals(parser: argparse.ArgumentParser) -> None:
    """The files, and where the HTML goes."""
    parser.add_argument(
        "files",
        metavar="FILE",
        type=Path,
        nargs="+",
        help="PyTorch profiler JSON (plain or .gz), Nsight Systems .sqlite or .nsys-rep, Nsight "
        "Compute --csv or .ncu-rep; several files are the ranks of one run",
    )
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="write one self-contained HTML file as well"
    )


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the report; 2 where a file is none."""
    from gpuwhy.evidence.traces import read
    from gpuwhy.evidence.traces.trace import TraceError

    files: list[Path] = arguments.files
    try:
        kinds = {read.is_ncu(path) for path in files}
        if len(kinds) > 1:
            raise TraceError(
                "Nsight Compute's reports hold single kernels and the others timelines: "
                "give one kind at a time"
            )
        if kinds == {True}:
            return _kernels(files, arguments.html, settings)
        return _timelines(files, arguments.html, settings)
    except TraceError as error:
        raise CommandError(str(error), USAGE) from error


def _timelines(files: Sequence[Path], page: Path | None, settings: Settings) -> int:
    from gpuwhy.evidence.traces import html, text
    from gpuwhy.evidence.traces.analysis import analyse
    from gpuwhy.evidence.traces.read import read_trace

    analysis = analyse([trace for path in files for trace in read_trace(path)])
    names = [str(path) for path in files]
    if page is not None:
        _write(page, html.render(analysis, names))
    if settings.json:
        _print(analysis.as_json())
    else:
        sys.stdout.write(text.render(analysis, style_for(sys.stdout), names))
    return ANSWERED


def _kernels(files: Sequence[Path], page: Path | None, settings: Settings) -> int:
    from gpuwhy.evidence.traces import ncu, text
    from gpuwhy.evidence.traces.read import read_kernels

    if page is not None:
        raise CommandError("--html draws timelines, and ncu's reports have none", USAGE)
    table = ncu.table(read_kernels(files))
    if settings.json:
        _print({"schema": 1, "ranks": [], "tables": {table.key: table.as_json()}})
    else:
        style = style_for(sys.stdout)
        sys.stdout.write(text.drawn(table, style) + "\n" + ncu.advice(table, style))
    return ANSWERED


def _print(made: dict[str, Any]) -> None:
    json.dump(made, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def _write(page: Path, document: str) -> None:
    try:
        page.write_text(document, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {page}: {error.strerror or error}", NOTHING) from error
