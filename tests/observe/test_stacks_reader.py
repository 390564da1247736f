"""Which thread a stack is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.observe.pyspy_formats import DumpedThread
from gpuwhy.observe.source_text import SourceText
from gpuwhy.observe.stacks_reader import StackReader, Target

PTHREAD = 0x7F5E_0000_1740


@pytest.mark.parametrize(
    ("name", "tid", "root", "main"),
    [
        ("MainThread", PTHREAD, "<module>", True),
        ("", 7, "call_back", True),
        ("", PTHREAD, "<module>", True),
        ("", PTHREAD, "_run_module_as_main", True),
        ("", PTHREAD, "_bootstrap", False),
        ("", PTHREAD, "call_back", False),
        ("Thread-1", PTHREAD, "<module>", False),
    ],
)
def test_the_main_thread(tmp_path: Path, name: str, tid: int, root: str, main: bool) -> None:
    """By its name, by the system's id, or, where a job on Python 3.10 has neither, by its root."""
    reader = StackReader(Target(7, 1.0, "rank", 7), frozenset((7,)), SourceText(tmp_path))
    frames = [["step", "/job/train.py", 3], [root, "/job/train.py", 9]]
    (stack, *_) = reader.dump([DumpedThread(tid, name, True, False, frames, [])], 100.0)
    assert stack["main"] is main
