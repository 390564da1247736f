"""The time slice that this thread asks the scheduler for: short ones come soon.

A sampler that is woken while all CPUs are busy waits for the end of somebody's slice. It then
samples late just where the job computes, and sees too many waits: with two CPUs for a loop, its
worker and the sampler 3.1 ± 1.3 points too many, with short slices 1.2 ± 1.6, at the same pace of
the job (``python -m bench.short_slices``). A thread that asks for shorter slices is let on sooner
and gets no more of the CPU for it (EEVDF: Linux 6.12 and newer, ``sched_runtime`` of
sched_setattr(2) for SCHED_OTHER). It is no priority and needs no right; older kernels take no
notice.
"""

from __future__ import annotations

import ctypes
import platform

SHORTEST_NS = 100_000
"""The kernel takes 0.1 to 100 ms; its own slices are of 0.7 to 2.8 ms, by the number of CPUs."""

_NUMBERS = {"x86_64": (314, 315), "aarch64": (274, 275)}  # sched_setattr, sched_getattr
_FAIR = (0, 3)  # SCHED_OTHER, SCHED_BATCH


class _Attributes(ctypes.Structure):
    """``struct sched_attr`` as of Linux 3.14: 48 bytes."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def ask_for_short_slices(nanoseconds: int = SHORTEST_NS) -> bool:
    """For this thread and what it starts from now on. False where that cannot be asked for here."""
    attributes = _read()
    if attributes is None or attributes.policy not in _FAIR:
        return False
    attributes.runtime = nanoseconds
    set_attributes, _ = _NUMBERS[platform.machine()]
    return _call(set_attributes, ctypes.byref(attributes), 0) == 0


def slice_ns() -> int | None:
    """The length that this thread has asked for (Linux 6.12 and newer tell their own where it has
    not); None where it cannot be read."""
    attributes = _read()
    return None if attributes is None else int(attributes.runtime)


def _read() -> _Attributes | None:
    if platform.system() != "Linux" or platform.machine() not in _NUMBERS:
        return None
    attributes = _Attributes()
    _, get_attributes = _NUMBERS[platform.machine()]
    size = ctypes.sizeof(attributes)
    done = _call(get_attributes, ctypes.byref(attributes), size, 0)
    return attributes if done == 0 else None


def _call(number: int, *arguments: object) -> int:
    """The thread itself is task 0."""
    return int(ctypes.CDLL(None).syscall(number, 0, *arguments))
