"""Stacks in which a thread stands still.

Reading a thread that was not stopped fails only while it makes and drops frames: never while it
waits, nor during one long C call. What the failed reads missed was a stack of another sort.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpuwhy.observe.observation import Frame

_WAITING = re.compile(
    r"/(?:threading|queue|selectors|subprocess|socket|ssl|multiprocessing/(?:connection|pool"
    r"|popen_\w+|queues|synchronize))\.py$"
    r"|torch/(?:cuda/(?:__init__|streams)|distributed/distributed_c10d)\.py$"
)
"""Files whose functions are a leaf, as a rule, only while a C call of theirs blocks. (A backward
pass is one C call too, but stands between calls that make frames: neither is a wait.)"""
_WAITING_CALLS = frozenset(("sleep", "synchronize", "scalar", "copy_to_host", "collective"))
"""Of the calls that ``source_text`` knows, those that wait."""


def stands_still(frames: Sequence[Frame]) -> bool:
    """``frames``: leaf first, the leaf with its call where that is known."""
    if not frames:
        return False
    leaf = frames[0]
    return leaf[3] in _WAITING_CALLS if len(leaf) > 3 else _WAITING.search(leaf[1]) is not None
