"""A run that ends while it is watched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpuwhy.observe.observation import Observation
from gpuwhy.pipeline import Pipeline

T = 1796050000


def job(until: int, end: int) -> Iterator[Observation]:
    """Of one rank that lives for so many of the seconds watched."""
    rank = {"pid": 7, "ppid": 1, "role": "rank", "run": "r", "rank": 0, "start": T - 100.0}
    for second in range(end):
        alive = [rank] if second < until else []
        yield {"t": T + second, "kind": "processes", "processes": alive}
        if alive:
            frames = [["train", "/a/train.py", 3]]
            yield {"t": T + second, "kind": "stack", "pid": 7, "dt": 1.0, "frames": frames}


@pytest.mark.parametrize(("until", "told"), [(10, True), (19, False), (20, False)])
def test_that_it_ended_is_told(until: int, told: bool) -> None:
    pipeline = Pipeline()
    pipeline.feed(job(until, 20))
    pipeline.finish()
    (entry,) = pipeline.verdicts()["gpus"]
    ended = [one["why"] for one in entry["cannot_see"] if one["signal"] == "processes"]
    assert bool(ended) is told
    assert not told or ("ended" in ended[0] and "seen for" in ended[0])
