"""The catalogue: every metric of ``/metrics`` once, and ``docs/metrics.md`` made from it.

``python -m gpuwhy.expose.catalogue`` prints the page; ``... --write FILE`` writes it and
``... --check FILE`` exits with 1 if the file is not what it would write.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from gpuwhy.expose.families import (
    cgroup,
    dataloader,
    exporter,
    gpu,
    health,
    host,
    ledger,
    process,
    python,
    source,
    training,
    verdict,
    wave,
)
from gpuwhy.expose.metric import Metric
from gpuwhy.ledger.accounts import ACCOUNTS
from gpuwhy.observe.observation import SOURCES
from gpuwhy.signals.gpu import REASONS
from gpuwhy.signals.phase_rules import PHASES

FAMILIES: dict[str, ModuleType] = {
    "ledger": ledger,
    "verdict": verdict,
    "gpu": gpu,
    "health": health,
    "wave": wave,
    "training": training,
    "dataloader": dataloader,
    "python": python,
    "process": process,
    "cgroup": cgroup,
    "host": host,
    "source": source,
    "exporter": exporter,
}
"""The families in the order of the page; each is collected, timed and isolated by itself."""

CATALOGUE: dict[str, Metric] = {
    metric.name: metric for family in FAMILIES.values() for metric in family.METRICS
}

_HEAD = """# Metrics

Made from the code by `python -m gpuwhy.expose.catalogue --write docs/metrics.md`: do not edit.

Values describe the last complete second (see `gpuwhy_last_second_timestamp_seconds`), unless the
help says otherwise. What is not known has no sample: never 0, NaN or a sentinel; a value older
than 10 s is not known. *Series* is the most that a metric may have for each of what follows it.
Shares of GPU time are rates of an account over rates of what it adds up to:
`rate(gpuwhy_run_gpu_time_seconds_total[1m]) / ignoring(account, reason) group_left
rate(gpuwhy_run_gpu_held_seconds_total[1m])`.
"""


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
    bound = f"{metric.bound} / {metric.scope}"
    cells = (f"`{metric.name}`", metric.kind, metric.unit or "-", labels, bound, metric.help)
    return "| " + " | ".join(cells) + " |"


_VALUES = {
    "account": ACCOUNTS,
    "cause": verdict.ANSWERS,
    "phase": PHASES,
    "source": SOURCES,
    "reason (of clock events)": tuple(REASONS.values()),
    "state (of workers)": dataloader.STATES,
    "mode (of CPUs)": host.MODES,
}
"""Labels whose values are fixed."""


def _values() -> list[str]:
    rows = [
        f"| {label} | {', '.join(f'`{value}`' for value in values)} |"
        for label, values in _VALUES.items()
    ]
    return ["## Values of labels", "", "| label | values |", "| --- | --- |", *rows, ""]


def page() -> str:
    """The text of ``docs/metrics.md``."""
    lines = [_HEAD]
    for name, family in FAMILIES.items():
        doc = (family.__doc__ or "").strip().splitlines()[0]
        lines += [f"## {name}", "", doc, "", "| metric | type | unit | labels | series | help |"]
        lines += ["| --- | --- | --- | --- | --- | --- |", *map(_row, family.METRICS), ""]
    return "\n".join([*lines, *_values()])


def main(arguments: list[str]) -> int:
    """Print, write or check the page; the exit status."""
    match arguments:
        case []:
            sys.stdout.write(page())
        case ["--write", path]:
            Path(path).write_text(page(), encoding="utf-8")
        case ["--check", path]:
            if Path(path).read_text(encoding="utf-8") != page():
                sys.stderr.write(f"{path} is not up to date: write it again with --write {path}\n")
                return 1
        case _:
            sys.stderr.write("usage: python -m gpuwhy.expose.catalogue [--write|--check FILE]\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
