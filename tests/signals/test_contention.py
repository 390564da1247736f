"""Kept off the CPU, where the kernel does not count it: runnable by state, without the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwhy.observe.recording import read
from gpuwhy.signals.contention import unserved
from gpuwhy.signals.tracks import Samples

BENCH = Path(__file__).resolve().parents[2] / "bench" / "recordings"


def tables(states: str, cpu: float) -> tuple[Samples, list[dict[str, object]]]:
    """Four workers, one letter of ``states`` a second for all of them."""
    samples, workers = Samples(), []
    for t, state in enumerate(states):
        workers = [{"pid": pid, "state": state, "cpu": cpu} for pid in range(4)]
        samples.add({"t": 100.0 + t, "processes": workers})
    return samples, workers


@pytest.mark.parametrize(
    ("states", "cpu", "share"),
    [
        ("RRRRRRRR", 0.25, 0.75),  # four on one core
        ("RRRRRRRR", 1.0, 0.0),  # each has its own
        ("SSSSSSSS", 0.0, 0.0),  # no batch is asked for
        ("DDDDDDDD", 0.05, 0.0),  # the disk is slow
        ("RSRSRSRS", 0.5, 0.0),
    ],
)
def test_runnable_without_a_cpu(states: str, cpu: float, share: float) -> None:
    samples, workers = tables(states, cpu)
    assert unserved(samples, workers, 104) == pytest.approx(share)


def test_a_few_glances_tell_nothing() -> None:
    samples, workers = tables("RR", 0.25)
    assert unserved(samples, workers, 101) is None


@pytest.mark.parametrize("name", ["c01-c03", "c08-c27", "c15-c16", "c45-c46"])
def test_it_is_what_the_kernel_counted(name: str) -> None:
    samples, wanted = Samples(), {}
    tables = [o for o in read(BENCH / f"{name}.gpuwhy.gz")[1] if o["kind"] == "processes"]
    for table in tables:
        samples.add(table)
        for worker in (p for p in table["processes"] if p["role"] == "worker"):
            wanted.setdefault(worker["rank_pid"], []).append(worker)
    for workers in wanted.values():
        counted = [p["run_delay"] for p in workers if "run_delay" in p]
        found = unserved(samples, workers, int(tables[len(tables) // 2]["t"]))
        assert found == pytest.approx(sum(counted) / len(counted), abs=0.15)
