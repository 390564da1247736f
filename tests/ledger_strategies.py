"""Any row that a GPU and a host could produce, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from gpuwhy.signals.gpu import REASONS
from gpuwhy.signals.phase_rules import PHASES
from gpuwhy.signals.row import GpuRow, GpuSignals, RunSignals

share = st.floats(0.0, 1.0)
maybe_share = st.none() | share


@st.composite
def phases(draw: st.DrawFn) -> dict[str, float] | None:
    names = draw(st.none() | st.lists(st.sampled_from(PHASES), min_size=1, unique=True))
    if names is None:
        return None
    weights = [draw(st.floats(0.01, 1.0)) for _ in names]
    return {name: weight / sum(weights) for name, weight in zip(names, weights, strict=True)}


gpus = st.builds(
    GpuSignals,
    uuid=st.just("GPU-a"),
    gpu=st.just(0),
    busy=maybe_share,
    sm_active=maybe_share,
    tensor=maybe_share,
    dram=maybe_share,
    power_w=st.none() | st.floats(50, 800),
    power_limit_w=st.none() | st.floats(100, 700),
    power_default_w=st.none() | st.floats(100, 700),
    sm_mhz=st.none() | st.floats(100, 2000),
    attainable_sm_mhz=st.none() | st.floats(1000, 2000),
    copied_in=st.none() | st.floats(0, 5e10),
    copied_out=st.none() | st.floats(0, 5e10),
    pcie_rx=st.none() | st.floats(0, 5e10),
    pcie_tx=st.none() | st.floats(0, 5e10),
    reasons=st.none() | st.frozensets(st.sampled_from(sorted(REASONS.values()))),
)

runs = st.builds(
    RunSignals,
    run=st.sampled_from(["a", "b", "c"]),
    rank=st.none() | st.integers(0, 3),
    pid=st.integers(100, 110),
    starting=st.booleans(),
    own_sm=maybe_share,
    other_sm=maybe_share,
    others=st.sampled_from([(), (7,)]),
    phases=phases(),
    contexts=st.dictionaries(st.just("evaluation"), share),
    calls=st.dictionaries(st.just("sleep"), share),
    loop_lines=share,
    stuck_s=st.none() | st.floats(0, 100),
    cpu=st.none() | st.floats(0, 4),
    run_delay=maybe_share,
    children_cpu=st.none() | st.floats(0, 8),
    throttled=maybe_share,
    allowed_cores=st.none() | st.integers(1, 64),
    host_cores=st.none() | st.integers(1, 64),
    waiting=maybe_share,
    straggler=st.booleans(),
    peer_missing=st.none() | st.booleans(),
    peers=st.integers(0, 3),
    world_size=st.none() | st.integers(1, 8),
)


@st.composite
def rows(draw: st.DrawFn) -> GpuRow:
    found = draw(st.lists(runs, max_size=3, unique_by=lambda r: r.pid))
    return GpuRow(
        draw(gpus),
        tuple(found),
        frozenset(("nvml", "processes")),
        draw(st.sampled_from([(), (99,)])),
    )
