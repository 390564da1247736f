"""The dashboards as they are built, and one Prometheus for all tests of queries."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grafana.source.build import DASHBOARDS
from scripts.stack.packages import PackageError
from tests.grafana import recorded
from tests.grafana.prometheus import Prometheus, serving

Dashboard = dict[str, Any]


@pytest.fixture(scope="session")
def dashboards() -> dict[str, Dashboard]:
    """Every dashboard by the name of its file."""
    return {name: build() for name, build in DASHBOARDS.items()}


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A real Prometheus on hosts of every kind (see ``HOSTS``)."""
    folder: Path = tmp_path_factory.mktemp("prometheus")
    lines = recorded.openmetrics(hosts())
    try:
        with serving(folder, lines, recorded.END - recorded.SECONDS, recorded.END) as server:
            yield server
    except PackageError as error:
        pytest.skip(f"no Prometheus: {error}")


def hosts() -> Iterator[recorded.Series]:
    """Series of all hosts; those with dcgm-exporter only where its outputs are at hand."""
    yield from recorded.played(["data_slow", "ddp_straggler", "cpu_quota"], "recorded")
    yield from recorded.played(["healthy"], "both")
    yield from recorded.played(["item_sync"], "blind", recorded.without_stacks)
    yield from recorded.over_two_hosts("ddp_straggler", "two-hosts")
    for severity in ("critical", "warning", "info"):  # the rules of all three hold at once
        yield recorded.firing("GPUDataStarved", run="data_slow", severity=severity)
    yield recorded.ended("GPUCopyBound", run="data_slow")
    yield recorded.firing("GPUSawtooth", run="data_slow")  # what the loss looks like
    yield recorded.firing("GPUAtDefaultPowerLimit", run="data_slow")  # never told
    yield recorded.firing("GPUHeldByCPUQuota", run="cpu_quota")
    yield recorded.firing("TrainingStalled", run="elsewhere")
    gpu = {"host": "recorded", "instance": "recorded:9877", "gpu": "0"}
    yield recorded.firing("GPUXidCritical", xid="79", uuid="recorded-data_slow-0", **gpu)
    yield recorded.firing("GpuwhySourceMissing", source="stacks", host="both")
    yield from recorded.viewed(recorded.everything(), "everything")
    yield from recorded.viewed(recorded.crowd(40), "crowd")
    yield from recorded.viewed(recorded.mig("MIG-7", L4, "1/0"), "mig")
    yield from recorded.viewed(recorded.unseen(), "unseen")
    if recorded.DCGM.is_dir():
        slice_labels = {"nvidia0": 'nvidia0",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1'}
        parts = (
            recorded.dcgm("l4.prom", "dcgm", {L4: "GPU-dcgm"}),
            recorded.dcgm("vgpu-a100.prom", "dcgm"),
            recorded.dcgm("l4.prom", "both", {L4: "recorded-healthy-0"}),
            recorded.dcgm("l4.prom", "mig", slice_labels),
        )
        yield from itertools.chain(*parts)


L4 = "GPU-c2f76b33-7953-256e-8f33-1343419b1a1c"
"""The card of the recorded output."""
