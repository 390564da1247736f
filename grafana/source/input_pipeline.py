"""Input pipeline and host: is the loader the limit, and what limits the loader?"""

from __future__ import annotations

from typing import Any

from grafana.source import dashboard as d
from grafana.source import hosts, palette, strips, words
from grafana.source.alerts import OF_RUN
from grafana.source.fields import by_gpu, by_name, dashed
from grafana.source.panels import Panel, stat, timeseries
from grafana.source.queries import on_rank, rate
from grafana.source.tables import table
from grafana.source.targets import lines, query

NO_WORKERS = "no loader workers in sight (needs gpuwhy and Python stacks)"
DATA = "data_wait|data_inline|data_sampler|data_worker_start"


def lost() -> Panel:
    """Share of GPU time lost to data."""
    part = rate(on_rank("gpuwhy_run_gpu_time_seconds_total", 'account="data"'))
    whole = rate(on_rank("gpuwhy_run_gpu_held_seconds_total"))
    return stat(
        "GPU time lost to data",
        "Share of the run's GPU time in which the GPU idled because a batch was late, at the end "
        "of the range. This is what the loader costs; all else on this page says why.",
        [query(f"sum({part}) / sum({whole})", now=True)],
        unit="percentunit",
        low=0,
        high=1,
        decimals=0,
        steps=((None, palette.GOOD), (0.08, palette.WARN), (0.3, palette.BAD)),
    )


def host_waits() -> Panel:
    """Share of the host's time in data phases."""
    phase = on_rank("gpuwhy_training_phase_ratio", f'phase=~"{DATA}"')
    return stat(
        "Main threads in the loader",
        "Share of the main threads' time spent waiting for a batch or loading one. The GPU loses "
        "less than this: it works on what was queued while the host waits.",
        [query(f"avg(sum by (uuid, rank) ({phase}))", now=True)],
        unit="percentunit",
        low=0,
        high=1,
        decimals=0,
        missing="no Python stacks in sight (needs gpuwhy)",
    )


def ready() -> Panel:
    """Batches ready of capacity."""
    return stat(
        "Batches ready",
        "Batches waiting to be taken and what the queue holds, mean over the ranks: an estimate "
        "from outside. Near 0: too slow. Near capacity: time to spare.",
        [
            query(f"avg({on_rank('gpuwhy_dataloader_ready_batches')})", "ready", now=True),
            query(f"avg({on_rank('gpuwhy_dataloader_capacity_batches')})", "capacity", now=True),
        ],
        unit="none",
        low=0,
        decimals=1,
        names=True,
        missing="no workers (needs gpuwhy)",
    )


def busy_workers() -> Panel:
    """Workers at work of all."""
    workers = "gpuwhy_dataloader_workers"
    busy = on_rank(workers, 'state="busy"')
    return stat(
        "Workers at work",
        "Workers making a batch as a share of all workers of the ranks shown. All at work and no "
        "batch ready: the loader limits the job. At work with batches ready: it keeps up.",
        [query(f"sum({busy}) / sum({on_rank(workers)})", now=True)],
        unit="percentunit",
        low=0,
        high=1,
        decimals=0,
        missing="no workers (needs gpuwhy)",
    )


def inline() -> Panel:
    """Ranks that load their data themselves."""
    return stat(
        "Ranks without workers",
        "Ranks with num_workers=0: every batch is made between two steps, in the thread that "
        "launches kernels. Where batches are cheap that costs little: see the loss on the left.",
        [query(f"sum({on_rank('gpuwhy_dataloader_inline')})", now=True)],
        unit="none",
        low=0,
        decimals=0,
        steps=((None, "text"), (1, palette.WARN)),
        missing="needs gpuwhy",
    )


def data_phases() -> Panel:
    """Data phases of the host."""
    phase = on_rank("gpuwhy_training_phase_ratio", f'phase=~"{DATA}"')
    return timeseries(
        "What do main threads do in the loader?",
        "Share of the main threads' time in each phase of the input pipeline, mean over the ranks "
        "shown. Waiting means that workers are late; loading itself means num_workers=0; starting "
        "workers shows at the begin of each epoch without persistent_workers.",
        [query(f"avg by (phase) ({phase})", "{{phase}}")],
        unit="percentunit",
        high=1,
        stacked=True,
        missing="no time in the loader, or no Python stacks in sight (needs gpuwhy)",
        overrides=[
            by_name(phase, color=palette.PHASES[phase], display=words.PHASES[phase])
            for phase in DATA.split("|")
        ],
    )


def worker_cpu() -> Panel:
    """CPU of a worker."""
    return timeseries(
        "Do the workers compute, or wait for storage?",
        "Cores used by one worker, mean of each rank, and share of workers that the kernel has "
        "running or waiting for a disk. At work and near one core: they compute, so make the "
        "function cheaper. At work with little CPU: they wait for storage or network, so bring "
        "the data nearer; more workers may help.",
        [
            *lines(on_rank("gpuwhy_dataloader_worker_cpu_cores"), "cores", of_gpu=False),
            query(
                f"avg({on_rank('gpuwhy_dataloader_workers_running_ratio')})",
                "share running, mean",
            ),
        ],
        unit="none",
        missing=NO_WORKERS,
        overrides=[
            *by_gpu(),
            dashed("^share"),
        ],
    )


def worker_functions() -> Panel:
    """Hot functions of the workers."""
    by = "function, file, line"
    hot = on_rank("gpuwhy_python_function_ratio", 'role="worker"')
    return table(
        "What do the workers spend their time in?",
        "Functions of your own code in which the loader's workers were seen over the last minute, "
        "as a share of the workers' time; of the ranks shown, the highest.",
        [query(f"topk(10, max by ({by}) ({hot}))", table=True)],
        columns={"function": "Function", "file": "File", "line": "Line", "Value": "Share"},
        sort="Share",
        missing=NO_WORKERS,
        overrides=[
            by_name("Line", width=70),
            by_name("Share", width=90, unit="percentunit", decimals=0),
        ],
    )


def build() -> dict[str, Any]:
    """The dashboard."""
    return d.dashboard(
        "gpuwhy-input",
        "Input pipeline and host",
        "Is the loader the limit, and what limits the loader: its code, its cores, its storage?",
        [d.host(), d.run(), d.rank(), d.gpu(of_run=True, many=True)],
        [
            (
                4,
                [
                    (5, lost()),
                    (5, host_waits()),
                    (5, ready()),
                    (5, busy_workers()),
                    (4, inline()),
                ],
            ),
            (6, [(24, strips.queue())]),
            (6, [(24, strips.workers())]),
            (6, [(24, data_phases())]),
            (6, [(24, worker_cpu())]),
            (6, [(24, worker_functions())]),
            d.heading("Cores: what the job may use, and what it gets"),
            (6, [(24, hosts.cores())]),
            (6, [(24, hosts.throttling())]),
            (6, [(24, hosts.main_threads())]),
            d.heading("The hosts of the run"),
            (6, [(24, hosts.cpu())]),
            (6, [(24, hosts.pressure())]),
            (6, [(24, hosts.memory())]),
            (6, [(24, hosts.disks())]),
            (6, [(24, hosts.network())]),
        ],
        alerts=OF_RUN,
    )
