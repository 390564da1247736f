"""Rows of an Nsight Systems database as rows of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuwhy.evidence.traces.trace import KERNEL, MEMCPY, MEMSET, UNKNOWN

Row = tuple[int, str, Sequence[Any]]
"""Process, sort of row, values."""

WAYS = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD",
    9: "HtoH", 10: "PtoP", 11: "HtoD", 12: "DtoH", 13: "DtoD",
}  # fmt: skip
"""``copyKind``; 11 to 13 are migrations of unified memory (ENUM_CUDA_MEMCPY_OPER)."""
MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed"}
"""``srcKind`` and ``dstKind`` (ENUM_CUDA_MEM_KIND)."""


def activity(place: Sequence[Any], kind: int, name: str, size: Any) -> Row:
    """Of a place: start, end, correlation, device, stream, process."""
    start, end, correlation, device, stream, pid = place
    row = (start, end, correlation, device, stream or 0, kind, name, size)
    return process_of(pid), "activity", row


def copy(*row: Any) -> Row:
    """Of a place, bytes, copyKind, srcKind, dstKind."""
    *place, size, way, source, target = row
    return activity(place, MEMCPY, copy_name(way, source, target), size)


def memset(*row: Any) -> Row:
    """Of a place, bytes."""
    *place, size = row
    return activity(place, MEMSET, "Memset (Device)", size)


def graph(*place: Any) -> Row:
    """Of a place: a whole CUDA graph, where its kernels were not recorded one by one."""
    return activity(place, KERNEL, "CUDA graph", UNKNOWN)


def copy_name(way: Any, source: Any, target: Any) -> str:
    """In the words of the PyTorch profiler: ``Memcpy HtoD (Pageable -> Device)``."""
    name = f"Memcpy {WAYS.get(way, 'of unknown direction')}"
    if source in MEMORY and target in MEMORY:
        name += f" ({MEMORY[source]} -> {MEMORY[target]})"
    return name


def known(value: Any) -> int:
    """A number, UNKNOWN where it is absent; ValueError or TypeError where it is none."""
    return UNKNOWN if value is None else int(value)


def process_of(serialized: Any) -> int:
    """Process of a ``globalPid`` or ``globalTid``; 0 where the schema has none."""
    return (int(serialized) >> 24) & 0xFFFFFF if serialized is not None else 0


def thread_of(serialized: Any) -> int:
    """Thread of a ``globalTid``."""
    return int(serialized) & 0xFFFFFF if serialized is not None else 0
