"""Lockstep: the GPUs of one run over all its hosts. Who waits for whom?"""

from __future__ import annotations

from typing import Any

from grafana.source import dashboard as d
from grafana.source import palette, words
from grafana.source.alerts import OF_RUN
from grafana.source.fields import by_name, by_rank, hidden, link
from grafana.source.panels import NOT_TOLD, Panel, stat, states, timeseries
from grafana.source.queries import on_gpu, on_rank, rate, with_rank
from grafana.source.tables import table
from grafana.source.targets import lines, query, strips
from grafana.source.verdicts import ONE_GPU

SINE = on_gpu("gpuwhy_gpu_wave_phase_sine")
COSINE = on_gpu("gpuwhy_gpu_wave_phase_cosine")
PERIOD = on_gpu("gpuwhy_gpu_wave_period_seconds")
CENTRE = on_gpu("gpuwhy_gpu_wave_centre_timestamp_seconds")


def together(expr: str, back: str) -> str:
    """The latest value at a moment when all GPUs tell of the same ten seconds: exporters are not
    read at the same time, and phases of different seconds cannot be compared."""
    same = f"max({CENTRE}) == min({CENTRE})"
    return f"last_over_time((({expr}) and on () ({same}))[{back}:5s])"


def offset() -> str:
    """How far each GPU's wave is from the run's mean phase, in seconds (wrapped to half a period
    either way)."""
    mean_sine, mean_cosine = f"scalar(avg({SINE}))", f"scalar(avg({COSINE}))"
    across = f"({SINE} * {mean_cosine} - {COSINE} * {mean_sine})"
    along = f"({COSINE} * {mean_cosine} + {SINE} * {mean_sine})"
    return together(f"({across} atan2 {along}) / (2 * pi()) * {PERIOD}", "15s")


def in_step() -> Panel:
    """Length of the mean phase vector."""
    return stat(
        "Are they in step?",
        "Length of the mean of the GPUs' phases, from their power at 50 Hz over the same ten "
        "seconds of UTC on every host: 1 is all in step, 0 none. In step is what a run of many "
        "ranks is meant to be; in step and losing time means that all wait for one thing. Clocks "
        "of hosts must agree (NTP).",
        [query(together(f"sqrt(avg({SINE}) ^ 2 + avg({COSINE}) ^ 2)", "1m"), now=True)],
        unit="none",
        low=0,
        high=1,
        decimals=2,
        missing="no common rhythm in sight (needs gpuwhy)",
    )


def waited_for() -> Panel:
    """The rank that the others wait for."""
    behind = on_rank("gpuwhy_training_rank_behind")
    none = f'label_replace(max({behind}) == 0, "rank", "none", "", "")'
    return stat(
        "Which rank do the others wait for?",
        "The rank that is late, by NCCL's own counts of collectives where they can be read, else "
        "by comparing the ranks in sight. It looks idle while those that wait look busy.",
        [query(f"topk(1, max by (rank) ({behind} == 1) or {none})", table=True)],
        unit="string",
        field="rank",
        filled=False,
        missing="not told: needs gpuwhy, and NCCL RAS or all ranks on one host",
    )


def waiting() -> Panel:
    """Mean share of time in collectives."""
    part = rate(on_rank("gpuwhy_run_gpu_time_seconds_total", 'account="comm"'))
    whole = rate(on_rank("gpuwhy_run_gpu_held_seconds_total"))
    return stat(
        "How much do they wait for each other?",
        "Share of the run's GPU time spent in collectives, waiting, mean over its ranks, at the "
        "end of the range. It is no proof of a slow network: one late rank makes all others wait.",
        [query(f"sum({part}) / sum({whole})", now=True)],
        unit="percentunit",
        low=0,
        high=1,
        decimals=0,
        steps=((None, palette.GOOD), (0.08, palette.WARN), (0.3, palette.BAD)),
    )


def answering() -> Panel:
    """Ranks in sight, of all."""
    return stat(
        "Are all ranks there?",
        "Ranks in sight of some exporter, how many the run has by its own account, and whether "
        "NCCL misses one. A missing rank means that the others will wait for ever.",
        [
            query(f"count({on_rank('gpuwhy_training_age_seconds')})", "in sight", now=True),
            query(f"max({on_rank('gpuwhy_training_world_size')})", "in all", now=True),
            query(f"sum({on_rank('gpuwhy_training_peer_missing')})", "miss a peer", now=True),
        ],
        unit="none",
        names=True,
        decimals=0,
    )


def ranks() -> Panel:
    """One row for each rank."""
    by = "host, uuid, gpu, mig, rank"

    def of(name: str) -> str:
        return f"max by ({by}) (avg_over_time({on_rank(name)}[1m]))"

    joined = [
        f"max by ({by}) ({with_rank(on_gpu(series))})"
        for series in ("gpu:busy:ratio", "gpu:sm_active:ratio", "gpu:power:watts")
    ]
    return table(
        "Who waits for whom?",
        "Each rank at the end of the range, the one that is late first. Late: share of the last "
        "minute in which the others waited for it. Waits: share of time its kernels spun in a "
        "collective. Do not be misled by busy: a waiting rank reads 94 % busy, the late one 19 %; "
        "SM activity and power tell the truth.",
        [
            query(of("gpuwhy_training_rank_behind"), table=True),
            query(of("gpuwhy_training_waiting_ratio"), table=True),
            query(f"max by ({by}) ({on_rank('gpuwhy_training_step')})", table=True),
            *(query(expr, table=True) for expr in joined),
        ],
        columns={
            "host": "Host",
            "gpu": "GPU",
            "mig": "MIG",
            "rank": "Rank",
            "Value #A": "Late",
            "Value #B": "Waits",
            "Value #C": "Step",
            "Value #D": "Busy",
            "Value #E": "SM active",
            "Value #F": "Power",
            "uuid": "uuid",
        },
        sort="Late",
        numbered="Rank",
        most=100,
        overrides=[
            by_name("GPU", width=60, links=[link("This GPU", ONE_GPU)]),
            by_name("MIG", width=60),
            by_name("Rank", width=70),
            *(
                by_name(
                    name,
                    unit="percentunit",
                    decimals=0,
                    min=0,
                    max=1,
                    color=color,
                    cell={"type": "gauge", "mode": "basic"},
                )
                for name, color in (
                    ("Late", palette.ACCOUNTS["host"]),
                    ("Waits", palette.ACCOUNTS["comm"]),
                    ("Busy", palette.SIGNALS["busy"]),
                    ("SM active", palette.SIGNALS["SM active"]),
                )
            ),
            by_name("Step", width=90, decimals=0),
            by_name("Power", width=90, unit="watt", decimals=0),
            hidden("uuid"),
        ],
    )


def late() -> Panel:
    """Which rank is late, when."""
    return states(
        "Which rank is late, when?",
        "A strip for each rank: coloured while the others wait for it. One strip coloured all "
        "along is one slow rank (its loader, its host, its card); colours that wander from rank to "
        "rank are jitter. Above 32 ranks choose some of them.",
        strips(on_rank("gpuwhy_training_rank_behind"), host=True),
        mappings=words.late(),
        missing="not told (needs gpuwhy, and NCCL RAS or all ranks on one host), or more than 32 "
        "ranks: choose some above",
    )


def activity() -> Panel:
    """SM activity of each rank."""
    return timeseries(
        "Do they work at the same time?",
        "SM activity of each rank. Curves that fall together wait for one thing; one that lies "
        "apart is the one to look at. Swings faster than the scrape do not show here: the phase "
        "below has them.",
        lines(on_gpu("gpu:sm_active:ratio"), "SM active", host=True),
        unit="percentunit",
        high=1,
        missing=NOT_TOLD,
        overrides=by_rank(),
    )


def power() -> Panel:
    """Power of each rank."""
    return timeseries(
        "Do they draw the power of work?",
        "Power of each rank's GPU: the signal that tells spinning in a collective from work on any "
        "card, with or without profiling counters.",
        lines(on_gpu("gpu:power:watts"), "power", host=True),
        unit="watt",
        missing=NOT_TOLD,
        overrides=by_rank(),
    )


def waits() -> Panel:
    """Waiting share of each rank."""
    return timeseries(
        "Which ranks wait in collectives?",
        "Share of time in which a rank's kernels were resident and waited for another rank: busy, "
        "and no work. The late rank is the one at zero while the others are high.",
        lines(on_rank("gpuwhy_training_waiting_ratio"), "waits", of_gpu=False, host=True),
        unit="percentunit",
        high=1,
        overrides=by_rank(),
    )


def steps_ahead() -> Panel:
    """Steps of each rank ahead of the slowest."""
    step = on_rank("gpuwhy_training_step")
    return timeseries(
        "Do the step counters agree?",
        "Steps that each rank is ahead of the one with the fewest. One step is the resolution: the "
        "ranks' counters are read at slightly different moments. More than two and growing: these "
        "ranks do not wait for each other, or one has stopped.",
        lines(f"{step} - on () group_left () min({step})", "ahead", of_gpu=False, host=True),
        unit="none",
        missing="no step counter in sight (needs gpuwhy and Python stacks)",
        overrides=by_rank(),
    )


def phase() -> Panel:
    """Offset of each GPU's wave."""
    return timeseries(
        "Whose rhythm is behind?",
        "How far each GPU's wave of power is from the mean of all, fitted over the same ten "
        "seconds of UTC on every host. Ranks in step lie on zero. A rank steadily to one side "
        "works at another moment than the rest. Comparable only where the periods agree.",
        lines(offset(), "offset", host=True),
        unit="s",
        low=None,
        missing="no common rhythm in sight (needs gpuwhy)",
        overrides=by_rank(),
    )


def periods() -> Panel:
    """Period of each GPU."""
    return timeseries(
        "Do they have the same rhythm?",
        "Period of each GPU's activity. The same for all ranks of a synchronous run; one that "
        "differs does something else. No curve: no period.",
        lines(PERIOD, "period", host=True),
        unit="s",
        missing="no period in sight (needs gpuwhy)",
        overrides=by_rank(),
    )


def build() -> dict[str, Any]:
    """The dashboard."""
    return d.dashboard(
        "gpuwhy-lockstep",
        "Lockstep",
        "The GPUs of one run over all its hosts: do they work in step, and who waits for whom?",
        [d.host(), d.run(), d.rank(), d.gpu(of_run=True, many=True)],
        [
            (4, [(6, waited_for()), (6, waiting()), (5, in_step()), (7, answering())]),
            (10, [(24, ranks())]),
            (9, [(24, late())]),
            (7, [(24, waits())]),
            (7, [(24, activity())]),
            (7, [(24, power())]),
            (6, [(24, steps_ahead())]),
            (6, [(24, phase())]),
            (6, [(24, periods())]),
        ],
        alerts=OF_RUN,
    )
