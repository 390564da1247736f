"""The one word over a window: what is small and what is not known may be one cause."""

from __future__ import annotations

import pytest

from gpuwhy.ledger.entry import Entry
from gpuwhy.ledger.split import Split
from gpuwhy.ledger.verdict import verdict
from gpuwhy.signals.row import GpuRow, GpuSignals, RunSignals, Second

SEEN = frozenset(("nvml", "gpm", "power_ring", "gpu_processes", "stacks", "cgroup"))


def told(**accounts: float) -> dict[str, object]:
    """The verdict on ten seconds that were all split like this; the rest is work."""
    shares = {
        (name.partition("__")[0], name.partition("__")[2].replace("_", "-")): share
        for name, share in accounts.items()
    }
    shares[("compute", "")] = 1.0 - sum(accounts.values())
    run = RunSignals(run="r", rank=0, pid=1, phases={"backward": 1.0})
    row = GpuRow(GpuSignals(uuid="GPU-a", gpu=0, busy=0.8), (run,), SEEN)
    entries = [
        Entry(Second(t, (row,), {}), {("GPU-a", ("r", 0), 1): Split(shares)}) for t in range(10)
    ]
    found: dict[str, object] = verdict(entries)["gpus"][0]
    return found


@pytest.mark.parametrize(
    ("accounts", "cause"),
    [
        ({"host__python": 0.10}, "none"),
        ({"unknown__no_evidence": 0.10}, "none"),
        ({"host__python": 0.08, "unknown__no_evidence": 0.08}, "unknown"),
        ({"host__python": 0.12, "unknown__no_evidence": 0.08}, "host"),
        ({"host__python": 0.05, "data__waiting": 0.05, "unknown__no_evidence": 0.08}, "none"),
        ({"throttle__at_default_limit": 0.09, "unknown__no_evidence": 0.08}, "none"),
        ({"throttle__thermal": 0.09, "unknown__no_evidence": 0.08}, "unknown"),
        ({"checkpoint": 0.09, "unknown__no_evidence": 0.08}, "none"),
    ],
)
def test_the_word(accounts: dict[str, float], cause: str) -> None:
    assert told(**accounts)["cause"] == cause


def test_what_left_it_unknown_is_named_however_small() -> None:
    blind = told(host__python=0.08, unknown__no_limits=0.08)["cannot_see"]
    assert [b["signal"] for b in blind] == ["nvml"]  # type: ignore[attr-defined]
    assert told(host__python=0.12, unknown__no_limits=0.08)["cannot_see"] == []
