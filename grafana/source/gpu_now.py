"""One GPU now: numbers at the end of the time range, and who holds it."""

from __future__ import annotations

from grafana.source import palette, queries, words
from grafana.source.fields import by_name, link
from grafana.source.panels import NOT_TOLD, Panel, stat
from grafana.source.queries import GPU, on_gpu, share_of
from grafana.source.tables import table
from grafana.source.targets import query


def cause() -> Panel:
    """What the GPU waits for."""
    lost = f"max by (cause) ({on_gpu('gpuwhy_verdict_lost_ratio')})"
    plain = f"max by (cause) ({on_gpu('gpuwhy_verdict_active')} == 1) * 0"
    return stat(
        "What does it wait for?",
        "The largest loss of the runs on this GPU over the last minute of the range. Without a "
        "run there is no verdict: see who holds it, below.",
        [query(queries.with_reason(f"topk(1, {lost} or {plain})", GPU), table=True)],
        unit="string",
        mappings=words.answers(),
        field="answer",
        filled=True,
        steps=((None, palette.NEUTRAL),),
        missing="no verdict (needs gpuwhy and a run)",
    )


def _share(title: str, description: str, expr: str, *, warn_from: float | None = None) -> Panel:
    steps: tuple[tuple[float | None, str], ...] = ((None, "text"),)
    if warn_from is not None:
        steps = (*steps, (warn_from, palette.WARN))
    return stat(
        title,
        description,
        [query(f"max({expr})", now=True)],
        unit="percentunit",
        low=0,
        high=1,
        decimals=0,
        steps=steps,
        missing="not told",
    )


def busy() -> Panel:
    """Busy share."""
    return _share(
        "Busy",
        "Share of time with a kernel resident. Not SM activity: a rank that waits in a collective "
        "is busy too. Under MIG the driver gives no utilisation.",
        on_gpu("gpu:busy:ratio"),
    )


def active() -> Panel:
    """SM activity."""
    return _share(
        "SM active",
        "Share of the multiprocessors with work, mean over the last second. Healthy training of "
        "large models reads 80 to 90 %. Not told by cards without profiling counters.",
        on_gpu("gpu:sm_active:ratio"),
    )


def clock() -> Panel:
    """SM clock as a share."""
    return _share(
        "SM clock",
        "Clock as a share of the attainable one (lowest of maximum, application and locked "
        "clock). Low at rest is saving; low under load is a limit.",
        share_of(on_gpu("gpu:sm_clock:hertz"), queries.ATTAINABLE),
    )


def power() -> Panel:
    """Power as a share of the limit."""
    return _share(
        "Power",
        "Power as a share of the limit in force. Near 100 % is what a well-used card draws; it is "
        "a loss only where the clock sags much, and a fault only where somebody lowered the limit.",
        share_of(on_gpu("gpu:power:watts"), on_gpu("gpu:power_limit:watts")),
    )


def temperature() -> Panel:
    """Temperature."""
    return stat(
        "Temperature",
        "Temperature of the GPU. It slows down from the threshold in the strip below; most cards "
        "stay under 85 °C at full load. Hot alone is no fault: look whether the clock sags.",
        [query(f"max({on_gpu('gpu:temperature:celsius')})", now=True)],
        unit="celsius",
        low=0,
        high=100,
        decimals=0,
        steps=((None, "text"), (85, palette.WARN)),
        missing="not told",
    )


def memory() -> Panel:
    """Memory in use."""
    return _share(
        "Memory in use",
        "Device memory in use. Full memory says nothing about work: frameworks keep what they "
        "once allocated.",
        share_of(on_gpu("gpu:memory_used:bytes"), on_gpu("gpu:memory_total:bytes")),
    )


def identity() -> Panel:
    """Which card it is."""
    told = "host, gpu, mig, name, architecture, bus, numa, uuid, parent_uuid"
    dcgm = (
        'label_replace(label_replace(DCGM_FI_DEV_FB_USED{host=~"$host",UUID=~"$gpu"}, "uuid", "$1",'
        ' "UUID", "(.+)"), "name", "$1", "modelName", "(.+)")'
    )
    info = f"group by ({told}) ({on_gpu('gpuwhy_gpu_info')} or on (uuid) {dcgm})"
    return table(
        "Which card is it?",
        "Identity of the card. The index differs between containers and hosts; the UUID does not. "
        "NUMA is the node of the host's memory that the card is near to.",
        [query(info, table=True)],
        columns={
            "gpu": "GPU",
            "mig": "MIG",
            "name": "Card",
            "architecture": "Architecture",
            "bus": "Bus",
            "numa": "NUMA",
            "uuid": "UUID",
        },
        missing=NOT_TOLD,
        overrides=[
            by_name("GPU", width=50),
            by_name("MIG", width=50),
            by_name("Card", width=130),
            by_name("Architecture", width=100),
            by_name("NUMA", width=60),
        ],
    )


WHY = "/d/gpuwhy-why?var-run=${__data.fields.Run:percentencode}"


def holders() -> Panel:
    """Processes on the GPU."""
    told = "run, rank, pid, role, user, container, namespace, pod, script"
    who = f"group by ({told}) (gpuwhy_process_info{{{GPU}}})"
    used = f"max by (pid) (gpuwhy_process_gpu_memory_bytes{{{GPU}}})"
    return table(
        "Who holds it?",
        "Processes that hold memory on the GPU at the end of the range. role tenant: no training "
        "rank. A PID is that of the host. Holding memory is not working: see the share of the "
        "multiprocessors below.",
        [query(f"({who}) * on (pid) group_left () {used} or on (pid) ({who}) * NaN", table=True)],
        columns={
            "run": "Run",
            "rank": "Rank",
            "pid": "PID",
            "role": "Role",
            "user": "User",
            "container": "Container",
            "namespace": "Namespace",
            "pod": "Pod",
            "script": "Script",
            "Value": "Memory",
        },
        missing="nobody, or not in sight (needs gpuwhy)",
        overrides=[
            by_name("Run", links=[link("Why is it waiting?", WHY)]),
            by_name("Rank", width=60),
            by_name("PID", width=90),
            by_name("Role", width=80),
            by_name("Memory", width=110, unit="bytes"),
        ],
    )
