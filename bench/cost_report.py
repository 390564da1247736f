"""The results of ``bench.cost`` and ``bench.alert_timing`` as tables, and in their document."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.cost_stats import Estimate

from bench import cost_stats

Result = Mapping[str, Any]
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
NOT_TOLD = "-"
GOAL, GOAL_BOUND = 0.002, 0.005
GOAL_JOBS = ("c01", "c05", "c03")
"""Those whose steps are steady enough for a goal; a job bound by launches drifts on its own."""
CROWDED = "Ranks of a crowded host, without a GPU:"
WHAT = {
    "c01": "bound by its GPU",
    "c35": "bound by launches",
    "c03": "bound by its loader's four workers",
    "c05": "bound by its loader in the main process",
    "computing": "what a step computes",
    "whole step": "with its waits",
}
TIMES = {
    "verdict_s": "onset to the verdict",
    "firing_s": "onset to the alert firing in Prometheus",
    "notified_s": "onset to the notification",
    "resolved_after_stop_s": "end of the faulty job to the notification that it is resolved",
    "resolved_after_mend_s": "first step of the mended job to that notification",
}


def text(results: Sequence[Result]) -> str:
    """Everything that the files tell, as Markdown."""
    costs = [one for one in results if one["kind"] == "cost"]
    crowds = [one for one in results if one["kind"] == "crowd"]
    alerts = [one for one in results if one["kind"] == "alerts"]
    parts = [_measured_on(results)]
    if costs:
        parts += [_goal(costs), _slowdowns(costs), _own(costs), _peers(costs)]
    if crowds:
        parts += [CROWDED, _slowdowns(crowds), _own(crowds)]
    parts += [_alert(one) for one in alerts]
    return "\n\n".join(part for part in parts if part)


def write(files: Sequence[Path], document: Path) -> int:
    """Put the figures of the files between the document's marks; 2 where that cannot be done."""
    try:
        results = [json.loads(file.read_text()) for file in files]
        before, rest = document.read_text().split(BEGIN)
        after = rest.split(END)[1]
        document.write_text(f"{before}{BEGIN}\n{text(results)}\n{END}{after}")
    except (OSError, ValueError, KeyError, IndexError) as error:
        sys.stderr.write(f"bench.cost --report: {error!r}: files of bench.cost are wanted, and a ")
        sys.stderr.write(f"document with the lines {BEGIN} and {END}\n")
        return 2
    return 0


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    found: dict[str, Any] = {
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
    try:
        from importlib import metadata

        found |= {name: metadata.version(name) for name in ("torch", "py-spy")}
    except metadata.PackageNotFoundError:
        pass
    return found | _card()


def _card() -> dict[str, Any]:
    """Name and driver of the first GPU; nothing where there is none."""
    try:
        import pynvml

        pynvml.nvmlInit()
        name = pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0))
        driver = pynvml.nvmlSystemGetDriverVersion()
        pynvml.nvmlShutdown()
    except Exception:  # no library, no driver, no card: a trial on a CPU
        return {}
    return {"gpu": name, "driver": driver}


def _measured_on(results: Sequence[Result]) -> str:
    lines = []
    for one in results:
        told = ", ".join(f"{name} {value}" for name, value in one["machine"].items())
        when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(one["t"]))
        lines.append(f"- {one['kind']}, {when}: {told}")
    return "\n".join(lines)


def _goal(costs: Sequence[Result]) -> str:
    """What the mean steps say about the goal, in words."""
    told = []
    for variant in _variants(costs):
        mean = cost_stats.summary(_jobs(costs, variant))["on"]["mean"]
        if variant in GOAL_JOBS and mean is not None:
            told.append(f"`{variant}` {goal(mean)} ({percent(mean)})")
    aim = f"at most {GOAL * 100:g} % slower, upper 95 % bound {GOAL_BOUND * 100:g} %"
    return f"Goal: {aim}. By mean steps {', '.join(told)}." if told else ""


def goal(mean: Estimate) -> str:
    """Whether a slowdown is within the goal, beyond it, or not known well enough."""
    if mean.low is None or mean.high is None:
        return "has too few windows for an interval"
    if mean.value <= GOAL and mean.high <= GOAL_BOUND:
        return "reaches it"
    return "misses it" if mean.low > GOAL else "is not known well enough"


def _slowdowns(costs: Sequence[Result]) -> str:
    rows = [
        "| job | step | windows on / control | slowdown, mean step | null control | slowdown, "
        "median step | null control | 99.9th percentile on | null control |",
        "| --- " * 9 + "|",
    ]
    troubles = []
    for variant in _variants(costs):
        jobs = _jobs(costs, variant)
        found = cost_stats.summary(jobs)
        on, control = found["on"], found["control"]
        step = NOT_TOLD if found["step_s"] is None else f"{found['step_s'] * 1e3:.2f} ms"
        inside = {True: ", inside", False: ", outside", None: ""}[found.get("tail_inside")]
        cells = [
            _name(jobs[0]),
            step,
            f"{on['windows']} / {control['windows']}",
            *(percent(part[key]) for key in ("mean", "median") for part in (on, control)),
            percent(on["tail"]) + inside,
            percent(control["tail"]),
        ]
        rows.append("| " + " | ".join(cells) + " |")
        said = [text for job in jobs for text in (job.get("error"), *job.get("notes", ())) if text]
        troubles += [f"{_name(jobs[0])}: {text}" for text in said]
    return "\n\n".join(["\n".join(rows), *troubles])


def _own(costs: Sequence[Result]) -> str:
    rows = [
        "| job | exporter's CPU, py-spy included | memory (PSS) | CPU where it never was switched "
        "off | start until it answers |",
        "| --- " * 5 + "|",
    ]
    for variant in _variants(costs):
        jobs = _jobs(costs, variant)
        cells = [
            *_use([window for job in jobs for window in _of(job, "on")]),
            _median(jobs, "unbroken_cores", _cores),
            _median(jobs, "ready_s", lambda v: f"{v:.1f} s"),
        ]
        rows.append(f"| {variant} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _peers(costs: Sequence[Result]) -> str:
    """What others cost in the same turns; nothing where none was measured."""
    rows = [
        "| job | watched by | windows | slowdown, mean step | slowdown, median step | its CPU | "
        "its memory (PSS) |",
        "| --- " * 7 + "|",
    ]
    for variant in _variants(costs):
        jobs = _jobs(costs, variant)
        found = cost_stats.summary(jobs)
        for name in found["peers"]:
            peer = found[name]
            use = _use([window for job in jobs for window in _of(job, name)])
            told = [str(peer["windows"]), percent(peer["mean"]), percent(peer["median"]), *use]
            rows.append("| " + " | ".join([variant, name, *told]) + " |")
    return "\n".join(rows) if len(rows) > 2 else ""


def _jobs(costs: Sequence[Result], variant: str) -> list[Result]:
    return [job for one in costs for job in one["jobs"] if job["variant"] == variant]


def _name(job: Result) -> str:
    return f"{job['job']} {job['variant']}, {WHAT.get(job['variant'], 'another job')}"


def _of(job: Result, state: str) -> list[Result]:
    return [window for window in job.get("windows", ()) if window["state"] == state]


def _use(windows: Sequence[Result]) -> list[str]:
    return [
        _median(windows, "cores", _cores),
        _median(windows, "pss", lambda v: f"{v / 1e6:.0f} MB"),
    ]


def _cores(share: float) -> str:
    return f"{share * 100:.1f} % of a core"


def _alert(one: Result) -> str:
    """The times of one run beside a starved job."""
    if "error" in one:
        return f"Alert timing: {one['error']}"
    times = one["times"]
    rows = [
        f"Windows, `for` and grouping of the shipped rules divided by {one['factor']:g}; cause "
        f"`{one['cause']}`, alert `{one.get('alert', NOT_TOLD)}`.\n",
        "| from, to | seconds |",
        "| --- | --- |",
    ]
    for key, meaning in TIMES.items():
        value = times.get(key)
        rows.append(f"| {meaning} | {NOT_TOLD if value is None else f'{value:.1f}'} |")
    if own := one.get("exporter"):
        memory = NOT_TOLD if own["pss"] is None else f"{own['pss'] / 1e6:.0f} MB"
        rows.append(
            f"\nThe exporter of this run, scraped every {one['scrape_s']:g} s: "
            f"{own['cores'] * 100:.1f} % of a core, {memory} after {own['seconds']:.0f} s."
        )
    return "\n".join(rows)


def percent(estimate: Estimate | None) -> str:
    """``+0.12 % (-0.05 to +0.30)``."""
    if estimate is None:
        return NOT_TOLD
    told = f"{estimate.value * 100:+.2f} %"
    if estimate.low is None or estimate.high is None:
        return told
    return f"{told} ({estimate.low * 100:+.2f} to {estimate.high * 100:+.2f})"


def _variants(costs: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(job["variant"] for one in costs for job in one["jobs"]))


def _median(rows: Sequence[Result], key: str, show: Any) -> str:
    values = [row[key] for row in rows if row.get(key) is not None]
    return str(show(statistics.median(values))) if values else NOT_TOLD
