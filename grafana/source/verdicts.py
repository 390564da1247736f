"""Panels of the verdict: cause, cost, next action, and what could not be seen."""

from __future__ import annotations

from grafana.source import palette, words
from grafana.source.fields import FILLED, by_name, hidden, link
from grafana.source.panels import NEEDS_GPUWHY, Panel, stat, states
from grafana.source.queries import LOST, RANKS, increase, on_rank, run_cause, unknown, with_reason
from grafana.source.tables import table
from grafana.source.targets import query, strips

NO_VERDICT = "no verdict at the end of this range (needs gpuwhy)"
_BY = "host, uuid, gpu, mig, run, rank"
ON_RANK = "on (uuid, mig, run, rank)"
ONE_GPU = "/d/gpuwhy-gpu?var-gpu=${__data.fields.uuid:percentencode}"
"""The page of the GPU of a table's row."""


def cause() -> Panel:
    """The run's cause in words."""
    return stat(
        "What are the GPUs waiting for?",
        "The run's cause over the last minute of the range: that of the rank which the others wait "
        "for, else the largest loss. A cause is named where it costs about 12 % of the GPU time "
        "or more. “None” is an answer; “Cannot tell” too: then see what cannot be seen, below. "
        "Misreading: it is the largest loss, not the only one; the ledger shows them all.",
        [query(with_reason(run_cause(), RANKS), table=True)],
        unit="string",
        mappings=words.answers(),
        field="answer",
        filled=True,
        steps=((None, palette.NEUTRAL),),
        missing=NO_VERDICT,
    )


def lost_share() -> Panel:
    """Lost share over the range."""
    lost = increase(on_rank("gpuwhy_run_gpu_time_seconds_total", LOST))
    held = increase(on_rank("gpuwhy_run_gpu_held_seconds_total"))
    return stat(
        "How much is lost?",
        "Share of the held GPU time that went to a cause, over the whole time range. Start-up, "
        "checkpoints and evaluation are not losses, nor is working at the factory power limit; "
        "what is unknown is not counted. A share that costs less than 8 % is not worth a cause.",
        [query(f"sum({lost}) / sum({held})", now=True)],
        unit="percentunit",
        low=0,
        high=1,
        decimals=0,
        steps=((None, palette.GOOD), (0.08, palette.WARN), (0.3, palette.BAD)),
    )


def cost() -> Panel:
    """GPU-hours lost over the range, and their price."""
    hours = f"sum({increase(on_rank('gpuwhy_run_gpu_time_seconds_total', LOST))}) / 3600"
    price = 'max(gpuwhy_gpu_hour_price{host=~"$host"})'
    return stat(
        "What did that cost?",
        "GPU-hours lost in the time range, and their price where one was set (gpuwhy serve "
        "--gpu-hour-price, in a currency of your choice). One GPU-hour is one GPU for one hour.",
        [
            query(hours, "GPU-hours", now=True),
            query(f"{hours} * on () group_left () {price}", "price", now=True),
        ],
        unit="none",
        low=0,
        decimals=2,
        names=True,
    )


def next_action() -> Panel:
    """What to do next for the run's cause."""
    return stat(
        "What next?",
        "The next action for the run's cause; the table below has the one for each rank, with the "
        "function. Change one thing at a time, then look again.",
        [query(with_reason(run_cause(), RANKS), table=True)],
        unit="string",
        mappings=words.next_actions(),
        field="answer",
        missing=NEEDS_GPUWHY,
        size=20,
    )


def _cause(cause: str) -> str:
    return f'cause="{cause}"'


def table_of_ranks() -> Panel:
    """One row for each cause of each rank."""
    named = f"max by ({_BY}, cause, reason) ({on_rank('gpuwhy_verdict_lost_ratio')})"
    none, untold = (
        f"max by ({_BY}, cause) ({on_rank('gpuwhy_verdict_active', _cause(cause))} == 1)"
        for cause in ("none", "unknown")
    )
    why = f"topk {ON_RANK.replace('on', 'by')} (1, {unknown(RANKS, _BY + ', ')}) ^ 0"
    untold = f"({untold} * {ON_RANK} group_left (reason) ({why}) or {ON_RANK} {untold})"
    # Nothing is lost; nobody knows how much.
    rows = f" or {ON_RANK} ".join([named, f"{none} * 0", f"{untold} * NaN"])
    for column in ("case", "next"):  # columns that show the same in other words
        rows = f'label_join({rows}, "{column}", "/", "cause", "reason")'
    sure = f"max by ({_BY}, cause) ({on_rank('gpuwhy_verdict_confidence_ratio')})"
    function = (
        f"max by ({_BY}, cause, function, file, line) ({on_rank('gpuwhy_verdict_function_info')})"
    )
    return table(
        "Which rank, which function?",
        "The causes of each rank on its GPU, largest loss first, over the last minute of the "
        "range. Function: the hottest Python function behind the cause, the deepest one of your "
        "own code. A rank that waits for others looks busy: the rank to mend is the one marked "
        "“the others wait for this rank”.",
        [query(q, table=True) for q in (rows, sure, function)],
        columns={
            "host": "Host",
            "gpu": "GPU",
            "mig": "MIG",
            "rank": "Rank",
            "cause": "Cause",
            "case": "Case",
            "Value #A": "Lost",
            "Value #B": "Sure",
            "function": "Function",
            "file": "File",
            "line": "Line",
            "next": "Next action",
            "uuid": "uuid",
        },
        sort="Lost",
        numbered="Rank",
        most=50,
        overrides=[
            by_name("Host", width=110),
            by_name("GPU", width=50, links=[link("This GPU", ONE_GPU)]),
            by_name("MIG", width=50),
            by_name("Rank", width=50),
            by_name("Cause", width=195, mappings=words.causes(), cell=FILLED),
            by_name("Case", width=180, mappings=words.cases()),
            by_name("Lost", width=60, unit="percentunit", decimals=0, mappings=words.not_told()),
            by_name("Sure", width=60, unit="percentunit", decimals=0),
            by_name("Function", width=180),
            by_name("File", width=140),
            by_name("Line", width=50),
            by_name("Next action", mappings=words.next_actions()),
            hidden("uuid"),
        ],
    )


def timeline() -> Panel:
    """Causes over time, a strip for each rank."""
    return states(
        "Which cause, when?",
        "The first cause of each rank's verdict, each over the minute before. Colours are those "
        "of the ledger. A gap is time without a verdict. Above 32 ranks choose some of them.",
        strips(on_rank("gpuwhy_verdict_cause_code")),
        mappings=words.cause_codes(),
        missing="no verdict, or more than 32 ranks: choose some above (needs gpuwhy)",
    )


def cannot_see() -> Panel:
    """Signals that a verdict had to do without."""
    signals = f"count by (host, signal) ({on_rank('gpuwhy_verdict_cannot_see')})"
    lost = 'label_replace({}, "lost", "$1", "signal", "(.+)")'
    return table(
        "What could not be seen?",
        "Signals that the verdicts had to do without at the end of the range, and on how many "
        "ranks. gpuwhy doctor, run on the host, says why and names the command that mends it. "
        "An empty table is good: everything was in sight.",
        [query(lost.format(signals), table=True)],
        columns={"host": "Host", "signal": "Missing", "lost": "Lost without it", "Value": "Ranks"},
        missing="nothing missing (or no verdict: needs gpuwhy)",
        overrides=[
            by_name("Missing", mappings=words.sources()),
            by_name("Lost without it", mappings=words.lost_without()),
            by_name("Ranks", width=80),
        ],
    )


def functions() -> Panel:
    """Hot functions of ranks and workers."""
    by = "role, phase, function, file, line"
    hot = f"topk(20, max by ({by}) ({on_rank('gpuwhy_python_function_ratio')}))"
    return table(
        "Which Python functions are hot?",
        "Share of the last minute spent in each function, waits included: of the main thread "
        "(rank) or of the loader's workers (worker); of the ranks shown, the highest. The deepest "
        "function of your own code is named. Misreading: a hot function costs GPU time only where "
        "the ledger charges its cause; workers may be busy with time to spare.",
        [query(hot, table=True)],
        columns={
            "role": "In",
            "phase": "Phase",
            "function": "Function",
            "file": "File",
            "line": "Line",
            "Value": "Share",
        },
        sort="Share",
        missing="no Python stacks in sight (needs gpuwhy)",
        overrides=[
            by_name("In", width=80),
            by_name("Phase", width=170, mappings=words.phases(), noValue="–"),
            by_name("Line", width=70),
            by_name(
                "Share",
                width=220,
                unit="percentunit",
                min=0,
                max=1,
                cell={"type": "gauge", "mode": "basic"},
                color=palette.LINES[0],
            ),
        ],
    )
