"""The row of signals: what one UTC second meant, for every GPU and every run on it.

A row is plain data and immutable. ``None`` means "not known", never zero. Shares are ratios of the
second (0 to 1), clocks MHz, power W, rates bytes/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Function = tuple[str, str, int]
"""A Python function as people look for it: (qualified name, file, line)."""

RunKey = tuple[str, int | None]
"""(run, global rank)."""


@dataclass(frozen=True, slots=True)
class Wave:
    """The GPU activity's period over the last stretch of the power ring (0 strength: none)."""

    period_s: float | None
    strength: float
    depth_w: float | None = None  # peak to trough
    cosine: float | None = None  # of the phase at ``centre``, fitted over a fixed 10 s of UTC
    sine: float | None = None
    centre: float | None = None  # UTC s


@dataclass(frozen=True, slots=True)
class GpuSignals:
    """What is true of a GPU (or MIG instance), whoever uses it."""

    uuid: str
    gpu: int | None = None
    mig: str | None = None
    name: str | None = None
    busy: float | None = None  # wall time with a kernel resident
    busy_source: str | None = None  # "gpm" or "utilization_ring" or "nvml"
    utilization: float | None = None  # as nvidia-smi shows it
    memory_utilization: float | None = None
    sm_active: float | None = None
    occupancy: float | None = None
    tensor: float | None = None
    dram: float | None = None
    pcie_tx: float | None = None
    pcie_rx: float | None = None
    copied_in: float | None = None  # PCIe to the device, bytes/s, over some seconds
    copied_out: float | None = None  # and from it
    nvlink_tx: float | None = None
    nvlink_rx: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    slowdown_c: float | None = None
    sm_mhz: float | None = None
    attainable_sm_mhz: float | None = None
    mem_mhz: float | None = None
    max_mem_mhz: float | None = None
    memory_used: float | None = None
    memory_total: float | None = None
    reasons: frozenset[str] | None = None  # names of active clock-event reasons
    wave: Wave | None = None
    lost_s: float = 0.0  # ring seconds lost in this second
    divided: bool = False  # into MIG instances in sight, whose time is accounted for in its place


@dataclass(frozen=True, slots=True)
class InputQueue:
    """An estimate of the input pipeline's state, made from outside."""

    workers: int
    busy_workers: float  # mean number at work in the second
    idle_workers: float  # waiting for an index: their share of the queue is full
    ready: float | None = None  # batches waiting, an estimate
    capacity: int | None = None
    inline: bool = False  # num_workers=0: the rank loads by itself


@dataclass(frozen=True, slots=True)
class RunSignals:
    """What is true of one rank of a run, on the GPU that holds the row (if any)."""

    run: str
    rank: int | None
    pid: int
    age_s: float | None = None  # since the rank's process started
    starting: bool = False  # young, and no step has been seen yet
    own_sm: float | None = None  # SM share of this rank on this GPU, over its sum where known
    other_sm: float | None = None  # SM share of every other process on this GPU
    others: tuple[int, ...] = ()  # PIDs of other GPU processes holding this GPU
    other_runs: tuple[str, ...] = ()
    phases: Mapping[str, float] | None = None  # host phase -> share; None: no stacks in sight
    contexts: Mapping[str, float] = field(default_factory=dict)  # startup/evaluation/checkpoint
    functions: Mapping[str, tuple[Function, float]] = field(default_factory=dict)  # by phase
    worker_function: tuple[Function, float] | None = None  # hottest user function of workers
    calls: Mapping[str, float] = field(default_factory=dict)  # leaf calls (see CALLS) -> share
    loop_lines: float = (
        0.0  # share in lines of the training loop itself that call nothing in Python
    )
    opaque: float = 0.0  # share of the user's phase at lines that may be a C call of any kind
    samples: int = 0  # stack samples behind the phases
    stuck_s: float | None = None  # how long the main thread's stack has not changed
    cpu: float | None = None  # cores used by the rank process
    main_cpu: float | None = None  # cores used by its main thread
    run_delay: float | None = None  # share of time runnable but not running
    worker_cpu: float | None = None  # mean cores used by a worker
    worker_delay: float | None = None  # mean share that a worker was runnable but not running
    workers_running: float | None = None  # share of workers in state R or D
    children_cpu: float | None = None  # cores used by everything below the rank
    queue: InputQueue | None = None
    throttled: float | None = None  # throttled periods / periods of the job's cgroup
    quota_cores: float | None = None
    allowed_cores: int | None = None  # affinity or cpuset of the rank
    workers: int | None = None  # DataLoader workers of the rank
    worker_cores: int | None = None  # the fewest cores that a worker may run on
    host_cores: int | None = None
    host_idle: float | None = None  # cores of the host that nobody used
    cgroup_seen: bool = False
    unlimited: bool = False  # its files were read: no CPU quota, and no group above is hidden
    holds_gpu: bool = False  # the driver says that it holds one, in sight or not
    step: int | None = None  # the step in progress at step_t
    step_t: float | None = None
    epoch: int | None = None
    total_steps: int | None = None
    step_name: str | None = None
    steps_per_second: float | None = None
    step_still_s: float | None = None  # how long the step counter has been seen not to move
    waiting: float | None = None  # share of the second resident in a collective, waiting
    waiting_how: str | None = None  # "peers", "signature", "lockstep": how it was told
    straggler: bool = False  # the other ranks in sight wait for this one
    ahead: bool | None = None  # RAS: has issued more collectives than the slowest rank
    behind: bool | None = None  # RAS: the one the others wait for
    peer_missing: bool | None = None  # RAS: a rank of the communicator does not answer
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # source: why, remedy
    peers: int = 0  # other ranks of the run in sight
    world_size: int | None = None


@dataclass(frozen=True, slots=True)
class GpuRow:
    """One second of one GPU; ``gpu`` is None for a run whose GPU is not in sight."""

    gpu: GpuSignals | None
    runs: tuple[RunSignals, ...]
    seen: frozenset[str]  # sources (observation.SOURCES) that served this row
    foreign: tuple[int, ...] = ()  # GPU processes that belong to no run in sight


@dataclass(frozen=True, slots=True)
class Second:
    """Everything that was understood of the UTC second [t, t + 1)."""

    t: int
    rows: tuple[GpuRow, ...]
    sources: Mapping[str, Mapping[str, object]]  # last ``source`` observation by source name
    host: Mapping[str, object] | None = None
