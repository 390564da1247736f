"""``gpuwhy trace``: a profiler's files, told in the vocabulary of the ledger."""

from __future__ import annotations

import argparse
import json
import os
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
        "Compute --csv or .ncu-rep; or logs of nvidia-smi (--query-gpu csv, dmon -o DT), dstat CSV "
        "and py-spy raw. Several files are the ranks, or the logs, of one run",
    )
    parser.add_argument(
        "--utc-offset",
        metavar="OFFSET",
        type=_offset,
        default=0.0,
        help="of the local times in logs, such as +02:00 (default: UTC)",
    )
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="write one self-contained HTML file as well"
    )


def _offset(text: str) -> float:
    from gpuwhy.evidence.imports.text_table import utc_offset

    try:
        return utc_offset(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the report; 2 where a file is none."""
    from gpuwhy.evidence.imports.text_table import LogError
    from gpuwhy.evidence.traces.trace import TraceError

    try:
        return _told(arguments, settings)
    except (TraceError, LogError) as error:
        raise CommandError(str(error), USAGE) from error


def _told(arguments: argparse.Namespace, settings: Settings) -> int:
    from gpuwhy.evidence.imports import logs
    from gpuwhy.evidence.traces import read

    files: list[Path] = arguments.files
    kinds = [(path, read.kind_of(path)) for path in files]
    families = {kind if kind in ("timeline", "kernels") else "logs" for _, kind in kinds}
    if len(families) > 1:
        told = ", ".join(f"{path} ({kind})" for path, kind in kinds)
        raise CommandError(
            f"timelines, single kernels and logs are told one kind at a time: {told}", USAGE
        )
    if families == {"timeline"}:
        return _timelines(files, arguments.html, settings)
    if families == {"kernels"}:
        return _kernels(files, arguments.html, settings)
    verdict = logs.diagnose(kinds, arguments.utc_offset)
    return _verdict(verdict, files, arguments.html, settings)


def _verdict(
    verdict: dict[str, Any], files: Sequence[Path], page: Path | None, settings: Settings
) -> int:
    """Of logs: what ``gpuwhy diagnose`` would have said of them."""
    from gpuwhy.evidence import report
    from gpuwhy.evidence.traces import html

    if page is not None:
        _write(page, html.of_verdict(verdict, [str(path) for path in files]))
    if settings.json:
        _print({"schema": 1, "ranks": verdict["gpus"], "runs": verdict["runs"], "tables": {}})
    else:
        note = f"from {', '.join(str(path) for path in files)}"
        sys.stdout.write(report.render(verdict, style_for(sys.stdout), note))
    return ANSWERED


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
    from gpuwhy.evidence.traces import html, ncu, text
    from gpuwhy.evidence.traces.read import read_kernels

    table = ncu.table(read_kernels(files))
    if page is not None:
        _write(page, html.of_kernels(table, [str(path) for path in files]))
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
    """Whole or not at all, where it is a file; a device (``/dev/stdout``) is written into."""
    in_place = page.exists() and not page.is_file()
    target = page if in_place else page.with_name(f".{page.name}.{os.getpid()}.partial")
    try:
        target.write_text(document, encoding="utf-8")
        if not in_place:
            target.replace(page)
    except OSError as error:
        if not in_place:
            target.unlink(missing_ok=True)
        why = f"{error.strerror or error}; choose a path with room and rights"
        raise CommandError(f"cannot write {page}: {why}", NOTHING) from error
