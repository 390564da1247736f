"""When a job's start is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline
from gpuwhy.signals.phases import classify
from gpuwhy.signals.run import STEP_PHASES

DATA_SLOW = Path(__file__).parents[1] / "recordings" / "data_slow.gpuwhy.gz"


def without_steps() -> list[Observation]:
    """A starved job of some seconds whose jitted step leaves no frame and hardly uses the GPU."""
    out = []
    for observation in read(DATA_SLOW)[1]:
        if observation["kind"] == "gpm":
            observation["graphics"] *= 0.05
        jitted = observation["kind"] == "stack" and classify(observation["frames"]).phase
        if jitted not in STEP_PHASES and observation["kind"] not in ("ring", "gpu"):
            out.append(observation)
    return out


def last_seconds(observations: list[Observation]) -> dict[str, float]:
    pipeline = Pipeline()
    pipeline.feed(observations)
    pipeline.finish()
    (gpu,) = pipeline.verdicts(3.0)["gpus"]
    accounts: dict[str, float] = gpu["accounts"]
    return accounts


def test_a_step_counter_that_moves_ends_it() -> None:
    assert last_seconds(without_steps())["data"] > 0.5


def test_without_one_it_goes_on() -> None:
    unseen = [o for o in without_steps() if o["kind"] != "locals"]
    assert last_seconds(unseen)["startup"] == pytest.approx(1.0, abs=0.1)
