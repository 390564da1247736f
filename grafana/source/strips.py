"""Curves of GPUs and their runs that lie below one another on the same time axis."""

from __future__ import annotations

from grafana.source import palette, queries, words
from grafana.source.fields import Override, by_gpu, by_name, by_pattern, colored, dashed
from grafana.source.panels import NOT_TOLD, Panel, timeseries
from grafana.source.queries import on_gpu, on_rank, share_of
from grafana.source.targets import lines, query


def activity() -> Panel:
    """Busy and SM active."""
    return timeseries(
        "Is the GPU busy, and does it work?",
        "Busy: share of time with a kernel resident. SM active: share of the multiprocessors with "
        "work. Read them together: busy near 100 % with SM active low is a rank that spins in a "
        "collective, or kernels too small to fill the GPU. Misreading: taking 100 % busy (what "
        "nvidia-smi calls utilisation) for full use. A healthy job reads 98 % busy, 88 % active.",
        [
            *lines(on_gpu("gpu:busy:ratio"), "busy"),
            *lines(on_gpu("gpu:sm_active:ratio"), "SM active"),
        ],
        unit="percentunit",
        high=1,
        missing=NOT_TOLD,
        overrides=colored(palette.SIGNALS),
    )


def clocks() -> Panel:
    """SM and memory clock as shares of what they can reach."""
    return timeseries(
        "Do the clocks reach what they can?",
        "Clocks now as a share of the attainable: the lowest of maximum, application and locked "
        "clock. A sag of the SM clock at high load is a power or heat limit at work; see the two "
        "strips below. Misreading: a low clock while the GPU idles is saving, not throttling. "
        "Without gpuwhy the maximum stands for the attainable.",
        [
            *lines(share_of(on_gpu("gpu:sm_clock:hertz"), queries.ATTAINABLE), "SM clock"),
            *lines(
                share_of(on_gpu("gpu:memory_clock:hertz"), on_gpu("gpu:memory_clock_max:hertz")),
                "memory clock",
            ),
        ],
        unit="percentunit",
        high=1.05,
        missing=NOT_TOLD,
        overrides=colored(palette.SIGNALS),
    )


def power() -> Panel:
    """Power and its limits."""
    return timeseries(
        "How much power, and what is the limit?",
        "Power drawn, with the lowest limit in force and the lowest factory limit of the GPUs "
        "shown. Power tells work from waiting where utilisation cannot: an H200 in a healthy step "
        "draws 690 W, spinning in NCCL 123 to 240 W. Working at the factory limit is normal; a "
        "limit below it was set by somebody.",
        [
            *lines(on_gpu("gpu:power:watts"), "power"),
            query(f"min({on_gpu('gpu:power_limit:watts')})", "limit in force, lowest"),
            query(f"min({on_gpu('gpu:power_default_limit:watts')})", "factory limit, lowest"),
        ],
        unit="watt",
        missing=NOT_TOLD,
        overrides=[*by_gpu(), dashed("limit")],
    )


def temperature() -> Panel:
    """Temperature and its threshold."""
    return timeseries(
        "How hot, and where does the card slow down?",
        "Temperature of the GPU, with the lowest threshold from which a card lowers its clocks. "
        "Heat is a cause only where the clock sags and the card names a thermal reason; hot alone "
        "is no fault.",
        [
            *lines(on_gpu("gpu:temperature:celsius"), "temperature"),
            query(f"min({on_gpu('gpu:slowdown_temperature:celsius')})", "slowdown, lowest"),
        ],
        unit="celsius",
        missing=NOT_TOLD,
        overrides=[*by_gpu(), dashed("slowdown")],
    )


def memory_controller() -> Panel:
    """Memory-controller utilisation."""
    return timeseries(
        "Is device memory being read and written?",
        "Share of time in which device memory was read or written (nvidia-smi's memory "
        "utilisation, DCGM's MEM_COPY_UTIL). It is neither the memory in use nor a meter of "
        "copies: there is no copy-engine meter; copies show in the traffic below.",
        lines(on_gpu("gpu:memory_controller_utilization:ratio"), "memory controller"),
        unit="percentunit",
        high=1,
        missing=NOT_TOLD,
        overrides=by_gpu(),
    )


def traffic() -> Panel:
    """PCIe and NVLink, summed over the GPUs: which way is what counts."""
    names = {
        "PCIe in": ("gpu:pcie_receive:bytes_per_second", "#d55e00"),
        "PCIe out": ("gpu:pcie_transmit:bytes_per_second", "#e69f00"),
        "NVLink in": ("gpu:nvlink_receive:bytes_per_second", "#0072b2"),
        "NVLink out": ("gpu:nvlink_transmit:bytes_per_second", "#56b4e9"),
    }
    return timeseries(
        "What travels over PCIe and NVLink?",
        "Traffic into and out of the GPUs shown, added up, on a logarithmic axis. There is no "
        "copy-engine meter: this is the place to see copies. Misreading: low traffic is no proof "
        "that copies are cheap; a copy of pageable memory fills 3 % of the link and still holds up "
        "the step.",
        [query(f"sum({on_gpu(series)})", name) for name, (series, _) in names.items()],
        unit="Bps",
        low=None,
        missing=NOT_TOLD,
        overrides=[
            *colored({name: color for name, (_, color) in names.items()}),
            by_pattern(".", scale={"type": "log", "log": 10}),
        ],
    )


def ledger() -> Panel:
    """The run view of the ledger as shares."""
    groups = (
        "compute",
        "throttle|shared",
        "copy|data|host|launch|quota|comm|stalled",
        "startup|checkpoint|evaluation",
        "unknown",
    )
    return timeseries(
        "Where does the GPU time go?",
        "All GPU time of the chosen ranks, each second in exactly one account; 100 % is the time "
        "in which the run held its GPUs. Blue at the bottom is the job's own work; each colour "
        "above is what the GPU waited for, or what took it. The split is causal: a GPU that idles "
        "because its loader is late is charged to data, whatever the host did in that moment. "
        "unknown is what the evidence cannot tell, not a remainder of compute. A gap was not "
        "observed.",
        [query(queries.ledger(accounts), "{{account}}") for accounts in groups],
        unit="percentunit",
        high=1,
        stacked=True,
        overrides=account_names(),
    )


def account_names() -> list[Override]:
    """Each account in its colour, called by its name and meaning."""
    return [
        by_name(name, color=color, display=words.account(name))
        for name, color in palette.ACCOUNTS.items()
    ]


def phases() -> Panel:
    """Phases of the host."""
    return timeseries(
        "What does the host do?",
        "Phases of the ranks' main threads, by sampling their Python stacks: mean over 10 s and "
        "over the ranks shown. These are the host's phases, not the GPU's accounts: CUDA is "
        "asynchronous, so a host may wait for data 65 % of the time while the GPU idles 49 %. "
        "Waiting in backward or in a synchronise is healthy while the GPU is busy.",
        [query(f"avg by (phase) ({on_rank('gpuwhy_training_phase_ratio')})", "{{phase}}")],
        unit="percentunit",
        high=1,
        stacked=True,
        overrides=[
            by_name(phase, color=color, display=words.PHASES[phase])
            for phase, color in palette.PHASES.items()
        ],
    )


def step_rate() -> Panel:
    """Steps a second of each rank."""
    return timeseries(
        "How fast does the run advance?",
        "Steps a second by the loop's own counter, read from outside. A fall here with the same "
        "ledger is a change of the work (longer sequences, another batch size). No curve: no "
        "counter was found in the loop.",
        lines(on_rank("gpuwhy_training_steps_per_second"), "steps/s", of_gpu=False),
        unit="none",
        missing="no step counter in sight (needs gpuwhy and Python stacks)",
        overrides=by_gpu(),
    )


def step_time() -> Panel:
    """Duration of a step of each rank."""
    return timeseries(
        "How long does a step take?",
        "Seconds for one step, mean over the last second or step. Ranks of one run differ by less "
        "than a step, since they meet in each gradient exchange: the slow one does not show here "
        "but in Lockstep.",
        lines(on_rank("gpuwhy_training_step_seconds"), "step", of_gpu=False),
        unit="s",
        missing="no step counter in sight (needs gpuwhy and Python stacks)",
        overrides=by_gpu(),
    )


def queue() -> Panel:
    """Batches ready against what the queue holds."""
    return timeseries(
        "Are batches ready?",
        "Batches that wait to be taken, against what the queue can hold: an estimate from the "
        "states of workers and loop. Near 0 the loader is too slow; near capacity it has time to "
        "spare, and more workers change nothing. No curve: no DataLoader workers in sight.",
        [
            *lines(on_rank("gpuwhy_dataloader_ready_batches"), "ready", of_gpu=False),
            query(f"max({on_rank('gpuwhy_dataloader_capacity_batches')})", "capacity, largest"),
        ],
        unit="none",
        missing="no loader workers in sight (needs gpuwhy and Python stacks)",
        overrides=[*by_gpu(), dashed("capacity")],
    )


def workers() -> Panel:
    """Loader workers by state."""
    states = {
        "busy": (palette.ACCOUNTS["data"], "busy: making a batch"),
        "idle": (palette.ACCOUNTS["compute"], "idle: the queue is full"),
        "unknown": (palette.ACCOUNTS["unknown"], "not seen in that second"),
    }
    return timeseries(
        "What do the loader's workers do?",
        "Workers of the ranks shown by state, added up. All busy and no batch ready: the loader "
        "limits the job. Mostly idle: it does not, whatever the CPU load looks like.",
        [query(f"sum by (state) ({on_rank('gpuwhy_dataloader_workers')})", "{{state}}")],
        unit="none",
        stacked=True,
        decimals=0,
        missing="no loader workers in sight (needs gpuwhy and Python stacks)",
        overrides=[by_name(n, color=c, display=text) for n, (c, text) in states.items()],
    )
