"""Stacks as one reads them from a running process: which are torn, and what a fork left behind.

A job that is not stopped may change its stack while it is read. Seen with py-spy 0.4.3: up to
Python 3.10 the chain of frames breaks off and the root is missing (in half of the samples of a
program that does nothing but call small functions, hardly ever in one that waits or computes);
from 3.11 on the root is always there and frames that have just returned may stand above the true
leaf, which cannot be told from real ones. A read that fails altogether py-spy itself counts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from gpuwhy.observe.observation import Frame

_ROOTS = frozenset(("<module>", "_bootstrap", "_run_module_as_main", "_worker_loop"))
_MOST_LINES = 10_000_000


def has_thread_root(frames: Sequence[Frame]) -> bool:
    """The root is where Python code begins: a script, ``python -m``, a thread, a child process."""
    return bool(frames) and last_part(frames[-1][0]) in _ROOTS


def is_impossible(frames: Sequence[Frame]) -> bool:
    """A frame that no interpreter has: read from memory that had been given back."""
    return any(
        not name.isprintable() or not name or not _is_path(file) or not 0 <= line < _MOST_LINES
        for name, file, line, *_ in frames
    )


@lru_cache(maxsize=10_000)
def _is_path(file: str) -> bool:
    """Text that somebody may have named a file: with ideographic or no-break spaces, joined emoji
    and even line ends, but without what only memory that is no text holds."""
    return bool(file) and (file.isprintable() or not any(map(_is_no_text, file)))


def _is_no_text(character: str) -> bool:
    control = unicodedata.category(character) == "Cc" and character not in "\t\n\r"
    return control or unicodedata.category(character) in ("Cn", "Co", "Cs")


def is_torn(frames: Sequence[Frame], *, rooted: bool) -> bool:
    """``rooted``: the thread has been seen with a root. Threads that C++ made (autograd's) have
    none, and nor has a main thread in a program that embeds Python."""
    return is_impossible(frames) or (rooted and not has_thread_root(frames))


def own_part(frames: Sequence[Frame]) -> list[Frame]:
    """A worker's stack without what it inherited: a forked child still holds the frames of its
    parent at that moment, below ``_worker_loop`` or ``_bootstrap`` (multiprocessing)."""
    for i, (name, file, *_) in enumerate(frames):
        short = last_part(name)
        if short == "_worker_loop" or (
            short == "_bootstrap" and file.endswith("multiprocessing/process.py")
        ):
            return list(frames[: i + 1])
    return list(frames)


def last_part(name: str) -> str:
    """``Thread._bootstrap`` -> ``_bootstrap``: names are qualified from Python 3.11 on."""
    return name.rsplit(".", 1)[-1]
