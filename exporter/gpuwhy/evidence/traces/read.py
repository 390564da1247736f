"""From a file to a trace: which reader, told by what is in the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwhy.evidence.imports import logs
from gpuwhy.evidence.traces import convert, kineto, ncu_csv, nsys_sqlite
from gpuwhy.evidence.traces.opened import SQLITE, check_text, head_of, is_gzip
from gpuwhy.evidence.traces.trace import Trace, TraceError

NSYS_SUFFIXES = (".nsys-rep", ".qdrep")
UNFINISHED = ".qdstrm"
NCU_SUFFIXES = (".ncu-rep",)


def kind_of(path: Path) -> str:
    """``kernels`` (of Nsight Compute), the name of a log, or else ``timeline``.

    Raises TraceError where the file cannot be read.
    """
    if path.suffix == UNFINISHED:
        raise TraceError(
            f"{path} is what nsys writes before it makes its report: QdstrmImporter, which comes "
            f"with Nsight Systems, makes {path.stem}.nsys-rep of it"
        )
    if path.suffix in NSYS_SUFFIXES:
        return "timeline"
    if path.suffix in NCU_SUFFIXES:
        return "kernels"
    head = head_of(path)
    return "kernels" if ncu_csv.is_csv(head) else logs.kind_of(head) or "timeline"


def read_trace(path: Path) -> list[Trace]:
    """The trace of a file: one entry, or one for each process that it holds.

    Raises TraceError where the file cannot be read or is none.
    """
    if path.suffix in NSYS_SUFFIXES:
        with convert.exported(path) as sqlite:
            return nsys_sqlite.read(sqlite, path.name)
    head = head_of(path)
    if head.startswith(SQLITE):
        if is_gzip(path):
            raise TraceError(f"{path} is a gzipped database: unpack it first (gunzip)")
        return nsys_sqlite.read(path, path.name)
    check_text(path, head)
    return [kineto.read(path)]


def read_kernels(paths: Sequence[Path]) -> list[ncu_csv.Kernel]:
    """The kernels of Nsight Compute's reports.

    Raises TraceError where a file cannot be read or is none.
    """
    kernels: list[ncu_csv.Kernel] = []
    for path in paths:
        if path.suffix in NCU_SUFFIXES:
            kernels += ncu_csv.parse(convert.ncu_csv_of(path), path.name)
        else:
            check_text(path, head_of(path))
            kernels += ncu_csv.read(path)
    return kernels
