"""The recorded H200 jobs as other cards and hosts would have given them: the verdict stays."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
from bench.accuracy_jobs import RECORDINGS
from bench.perturb import CHANGES
from tests.ledger.test_recordings import FOLDER, NAMES, expected, held

from gpuwhy.ledger.verdict import verdict
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline


@lru_cache(maxsize=16)
def observations(name: str) -> tuple[Observation, ...]:
    return tuple(read(Path(FOLDER) / f"{name}.gpuwhy.gz")[1])


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_stays(name: str, change: str) -> None:
    pipeline = Pipeline()
    pipeline.feed(CHANGES[change](observations(name)))
    pipeline.finish()
    found = held(verdict(pipeline.book.entries()))
    assert sorted(g["cause"] for g in found) == sorted(e["cause"] for e in expected(name))


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_changes_something(change: str) -> None:
    base = tuple(read(RECORDINGS / "c10-c42.gpuwhy.gz")[1])
    left = list(CHANGES[change](base))
    assert left
    assert left != list(base)
