"""The observation: the one form in which anything seen of the world travels.

An observation is a plain JSON object with at least ``t`` (UTC, Unix seconds, float) and ``kind``.
Sources emit them, a recording is a file of them, and everything after ``observe/`` reads nothing
else, so a recording replays through the same code as a live GPU.

Conventions: a value that could not be read is *absent* (never 0, -1, NaN or null). Shares are
ratios from 0 to 1, power is W, clocks are MHz as the driver gives them, sizes are bytes, rates are
bytes/s, durations are seconds, PIDs are those of the observer's PID namespace. ``uuid`` is the GPU
(or MIG instance) key. Cumulative counts keep the name of the kernel or driver counter.

The kinds:

``gpu_info``       identity of a GPU: at start, on change, every 60 s
``gpu``            one cheap sample: clocks, power, temperature, reasons, memory, utilisation
``gpm``            mean activity over the ``dt`` seconds that end at ``t`` (Hopper and newer)
``ring``           new samples of one of the driver's rings, on an even grid
``gpu_limits``     clocks, power and temperature limits, links: every 10 s and on change
``gpu_reasons``    cumulative seconds in each clock-event reason
``gpu_health``     Xid, ECC, row remaps, link errors: every 10 s
``xid``            one Xid event
``gpu_processes``  who holds memory on a GPU
``sm_share``       SM share by process since the last read
``processes``      the process table of all training jobs in sight
``cgroup``         limits and counters of one cgroup that holds such a process
``stack``          where one Python thread was for ``dt`` seconds
``locals``         integer locals that count steps and epochs
``host``           what dstat shows
``network_port``   one InfiniBand/RDMA port's counters
``nccl``           the answer of one NCCL RAS port
``source``         the state of one source: up or not, why, the remedy, cost, lag, loss
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Observation = dict[str, Any]
"""Any observation, as read from the pipe or a file. The classes below name the fields by kind."""

SOURCES = (
    "nvml",  # driver reachable at all; clocks, power, temperature, memory
    "gpm",  # activity counters, Hopper and newer
    "utilization_ring",
    "power_ring",
    "gpu_processes",  # who holds which GPU
    "sm_share",  # SM share by process
    "processes",  # /proc of the jobs
    "stacks",  # py-spy
    "cgroup",
    "host",
    "nccl_ras",
    "infiniband",
)
"""The names a ``source`` observation, ``cannot_see`` and ``gpuwhy_source_up`` may carry."""

Frame = list[Any]
"""``[name, file, line]`` or ``[name, file, line, call]``; ``file`` is the full path as the
interpreter knows it. ``call`` is what the source text of a *leaf* line calls, where it could be
read and is one of ``CALLS``: C calls leave no frame of their own."""

CALLS = ("copy_to_device", "copy_to_host", "scalar", "synchronize", "collective", "sleep", "gc")
"""What a leaf line may be known to call: ``.to(device)``/``.cuda()``, ``.cpu()``/``.numpy()``,
``.item()``/``.tolist()``, a device synchronise, a collective, ``time.sleep``, ``gc.collect``."""


class _Base(TypedDict):
    t: float


class GpuInfo(_Base, total=False):
    kind: Literal["gpu_info"]
    uuid: str
    gpu: int  # index as NVML numbers it; differs between containers
    mig: str  # "GI/CI" ids, absent without MIG
    parent_uuid: str  # the physical GPU of a MIG instance
    name: str
    architecture: str
    bus: str
    minor: int  # /dev/nvidiaN
    numa: int
    memory_total: int
    unified_memory: bool
    virtual: bool  # vGPU
    sm_ratio: float  # MIG: share of the parent's multiprocessors
    topology: list[dict[str, Any]]  # to each other GPU: {"uuid", "class", "nvlinks"?}


class Gpu(_Base, total=False):
    kind: Literal["gpu"]
    uuid: str
    utilization: float
    memory_utilization: float  # memory controller, not copies, not memory used
    sm_mhz: float
    mem_mhz: float
    power_w: float  # instant (NVML field 186)
    power_mean_w: float  # nvmlDeviceGetPowerUsage, a trailing mean over 1 s
    temperature_c: float
    memory_temperature_c: float
    reasons: int  # NVML clocksEventReasons bit mask
    memory_used: int  # without what the driver reserves
    energy_j: float  # cumulative


class Gpm(_Base, total=False):
    kind: Literal["gpm"]
    uuid: str
    dt: float
    graphics: float  # share of time with a kernel resident: "busy"
    sm: float
    occupancy: float
    tensor: float
    dram: float
    pcie_tx: float  # bytes/s
    pcie_rx: float
    nvlink_tx: float
    nvlink_rx: float


class Ring(_Base, total=False):
    kind: Literal["ring"]
    uuid: str
    ring: Literal["utilization", "memory_utilization", "power"]
    dt: float  # grid step: 0.2 for utilisation, 0.02 for power on an H200
    values: list[float | None]  # first one at t; ratio or W; null where the grid has a hole
    lost: float  # seconds lost since the previous read: the ring had wrapped


class GpuLimits(_Base, total=False):
    kind: Literal["gpu_limits"]
    uuid: str
    max_sm_mhz: float
    application_sm_mhz: float
    locked_sm_mhz: float
    max_mem_mhz: float
    power_limit_w: float
    power_default_w: float
    power_max_w: float
    slowdown_c: float
    shutdown_c: float
    max_operating_c: float
    pcie_generation: int
    pcie_width: int
    pcie_max_generation: int
    pcie_max_width: int
    nvlinks: int
    nvlinks_active: int
    mig_enabled: bool


class GpuReasons(_Base, total=False):
    kind: Literal["gpu_reasons"]
    uuid: str
    seconds: dict[str, float]  # cumulative, by THROTTLE_REASONS name


class GpuHealth(_Base, total=False):
    kind: Literal["gpu_health"]
    uuid: str
    xid_errors: int  # events since the observer started; absent where none can be received
    last_xid: int
    ecc_volatile_corrected: int  # since the driver was loaded
    ecc_volatile_uncorrected: int
    ecc_aggregate_corrected: int  # of the card's life
    ecc_aggregate_uncorrected: int
    row_remaps_corrected: int
    row_remaps_uncorrected: int
    row_remap_pending: bool  # waits for a reset
    row_remap_failed: bool
    pages_retired_pending: bool  # before Ampere
    pcie_replays: int
    nvlink_errors: dict[str, int]  # all links, by kind: "replay", "recovery", "crc", ...
    recovery_action: str  # what the driver asks for, "none" if nothing


class Xid(_Base, total=False):
    kind: Literal["xid"]
    uuid: str
    xid: int


class GpuProcesses(_Base, total=False):
    kind: Literal["gpu_processes"]
    uuid: str
    processes: list[dict[str, Any]]  # {"pid", "memory"?, "type": "compute" | "graphics" | "mps"}


class SmShare(_Base, total=False):
    kind: Literal["sm_share"]
    uuid: str
    dt: float  # what the driver averaged over; 0 < dt
    shares: list[list[Any]]  # [pid, sm ratio, memory ratio]


class Processes(_Base, total=False):
    """``processes[]``: pid, ppid, start (UTC s), role ("rank", "worker", "child", "launcher",
    "tenant": a GPU process that is no Python trainer), rank_pid (of the rank that
    it belongs to), run, rank, local_rank, world_size, name,
    user, python ("3.12"), state, threads, rss, affinity (number of CPUs allowed), numa (node on
    which a rank's main thread last ran, where there are several), cpu (cores used
    since the last observation), main_cpu (the same of the main thread), run_delay (s/s that
    runnable threads waited for a CPU, main thread), read_bytes, write_bytes, read_chars,
    voluntary, involuntary (cumulative), cgroup (path), container, pod, namespace, gpus (uuids
    held), script, command (trimmed, secrets masked)."""

    kind: Literal["processes"]
    processes: list[dict[str, Any]]


class Cgroup(_Base, total=False):
    kind: Literal["cgroup"]
    path: str
    version: Literal[1, 2]
    pids: list[int]
    quota_cores: float  # absent: no quota is set
    unlimited: bool  # true: the files were read and no CPU quota is set
    cpuset_cores: int
    usage_s: float
    nr_periods: int
    nr_throttled: int
    throttled_s: float  # a sum over CPUs: not wall time
    hidden_parents: bool  # true: groups above this one are out of sight, and so are their limits
    memory_current: int  # of the group that holds the limit, if one does
    memory_max: int
    memory_high_events: int
    oom_kills: int
    psi: dict[str, float]  # "cpu_some", "memory_some", "io_some", ...: cumulative seconds


class Stack(_Base, total=False):
    kind: Literal["stack"]
    pid: int
    dt: float
    tid: int
    thread: str
    main: bool
    active: bool
    gil: bool
    frames: list[Frame]  # leaf first


class Locals(_Base, total=False):
    kind: Literal["locals"]
    pid: int
    values: list[list[Any]]  # [function, file, name, int]; from the leaf outwards, main thread


class Host(_Base, total=False):
    kind: Literal["host"]
    cpus: int
    cpu_seconds: dict[str, float]  # cumulative, all CPUs; user, nice, system, idle, iowait, ...
    load1: float
    load5: float
    load15: float
    running: int  # tasks that run or wait for a CPU now
    blocked: int  # tasks that wait for a disk now
    context_switches: int  # cumulative, like every count below
    interrupts: int
    memory_total: int
    memory_available: int
    swap_total: int
    swap_free: int
    swap_in: int  # bytes
    swap_out: int
    disk_read_bytes: int  # whole disks only: nothing is counted twice
    disk_write_bytes: int
    network_receive_bytes: int  # without interfaces whose bytes pass another one too
    network_transmit_bytes: int
    psi: dict[str, float]  # as in cgroup: "cpu_some", ...: cumulative seconds
    numa: list[dict[str, Any]]  # {"node", "cpus", "memory_total", "memory_free"}


class NetworkPort(_Base, total=False):
    kind: Literal["network_port"]
    device: str  # "mlx5_0"
    port: int
    link_layer: str  # "InfiniBand" or "Ethernet" (RoCE)
    state: str  # "ACTIVE", "DOWN", ...
    up: bool  # state is ACTIVE
    rate: float  # of the link, bytes/s
    numa: int
    interfaces: list[str]  # network interfaces of the same card
    receive_bytes: int  # cumulative
    transmit_bytes: int
    errors: dict[str, int]  # cumulative, by the kernel's name of the counter
    congestion: dict[str, int]  # the same for waits and notifications


class Nccl(_Base, total=False):
    """``communicators[]``: hash, size, ranks[] of {rank, host, pid, gpu (NVML index), state,
    async_error, counts {kind: n}, missing (bool), considered_dead (bool)}."""

    kind: Literal["nccl"]
    port: str
    version: str  # of NCCL
    communicators: list[dict[str, Any]]


class Source(_Base, total=False):
    kind: Literal["source"]
    source: str  # one of SOURCES
    up: bool
    why: str  # when not up: what was met, in a sentence
    remedy: str
    missing: list[str]  # while up: fields of the kinds it emits that this GPU does not give
    uuid: str  # when it concerns one GPU
    pid: int  # when it concerns one process
    period_s: float
    lag_s: float  # how late the last read was
    cpu_s: float  # cumulative CPU the source has used, helpers included
    reads: int
    failures: int
    lost_s: float  # cumulative ring seconds lost
    torn: int  # cumulative stacks dropped as torn
    dropped: int  # cumulative observations lost on the way out: who reads them was too slow
    hung_s: float  # not up because a read has not come back for so long
    share: float  # of one core that the source may use, where it keeps a budget
    version: str  # of the foreign program or library behind it
