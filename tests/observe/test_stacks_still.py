"""Which stacks a thread stands still in."""

from __future__ import annotations

import pytest

from gpuwhy.observe.observation import Frame
from gpuwhy.observe.stacks_still import stands_still

LIB = "/usr/lib/python3.12"
SITE = "/venv/lib/python3.12/site-packages/torch"


@pytest.mark.parametrize(
    "leaf",
    [
        ["wait", f"{LIB}/threading.py", 327],
        ["_PollLikeSelector.select", f"{LIB}/selectors.py", 415],
        ["Connection._recv", f"{LIB}/multiprocessing/connection.py", 395],
        ["synchronize", f"{SITE}/cuda/__init__.py", 1040],
        ["encode", "/job/train.py", 9, "sleep"],
        ["train", "/job/train.py", 31, "scalar"],
    ],
)
def test_it_waits(leaf: Frame) -> None:
    assert stands_still([leaf, ["<module>", "/job/train.py", 90]])


@pytest.mark.parametrize(
    "leaf",
    [
        ["encode", "/job/train.py", 9],
        ["train", "/job/train.py", 31, "gc"],
        ["Module._call_impl", f"{SITE}/nn/modules/module.py", 1784],
        ["queue", "/job/queue_of_mine.py", 3],
    ],
)
def test_it_runs(leaf: Frame) -> None:
    assert not stands_still([leaf, ["wait", f"{LIB}/threading.py", 327]])


def test_no_stack() -> None:
    assert not stands_still([])
