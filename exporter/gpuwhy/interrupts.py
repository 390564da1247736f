"""Ctrl-C before a command has begun.

Python turns SIGINT into ``KeyboardInterrupt`` wherever the main thread happens to be. Within the
import system that may be a callback of a weak reference, which only prints it ("Exception ignored
in ..."), so that the program goes on as if nobody had asked. While modules are imported nothing is
open yet that would have to be closed: there the process just ends.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130
"""Exit status of what Ctrl-C ended, as shells have it."""


def end_at_once() -> None:
    """From now on Ctrl-C ends the process; where it is ignored (``nohup``, ``&``) it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_as_usual() -> None:
    """A command begins: from now on Ctrl-C is ``KeyboardInterrupt`` again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
