"""The verdict: which cause, how much it costs, how sure, which function, what cannot be seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuwhy.expose.metric import RUN, Metric, Samples, on_host, on_run
from gpuwhy.expose.view import View
from gpuwhy.ledger.accounts import CAUSES
from gpuwhy.observe.observation import SOURCES

ANSWERS = ("none", *CAUSES, "unknown")
"""Everything that a verdict may say. The place in this list is ``gpuwhy_verdict_cause_code``."""

ACTIVE = Metric(
    "gpuwhy_verdict_active",
    "gauge",
    (*RUN, "cause"),
    len(ANSWERS),
    "GPU and run",
    "1 for each cause that the verdict names (or for its answer none or unknown), else 0; every "
    "cause always has a series. Over gpuwhy_verdict_window_seconds.",
)
CODE = on_run(
    "gpuwhy_verdict_cause_code",
    "First cause of the verdict as a number, for value mappings: "
    + ", ".join(f"{code} {cause}" for code, cause in enumerate(ANSWERS))
    + ".",
)
LOST = Metric(
    "gpuwhy_verdict_lost_ratio",
    "gauge",
    (*RUN, "cause", "reason"),
    len(CAUSES) + 1,
    "GPU and run",
    "Share of the window's GPU time lost to a cause that the verdict names.",
)
CONFIDENCE = Metric(
    "gpuwhy_verdict_confidence_ratio",
    "gauge",
    (*RUN, "cause"),
    len(CAUSES) + 1,
    "GPU and run",
    "How sure the verdict is of a cause that it names, from 0 to 1.",
)
FUNCTION = Metric(
    "gpuwhy_verdict_function_info",
    "info",
    (*RUN, "cause", "function", "file", "line"),
    len(CAUSES),
    "GPU and run",
    "Hottest Python function behind a cause that the verdict names. For annotations: look it up, "
    "do not alert on its labels.",
)
CANNOT_SEE = Metric(
    "gpuwhy_verdict_cannot_see",
    "gauge",
    (*RUN, "signal"),
    len(SOURCES),
    "GPU and run",
    "1 for each signal that the verdict had to do without.",
)
RUN_ACTIVE = Metric(
    "gpuwhy_verdict_run_active",
    "gauge",
    ("run", "cause"),
    len(ANSWERS),
    "run",
    "1 for the cause of the run as a whole (that of the rank which the others wait for, else the "
    "largest), 0 for every other.",
)
WINDOW = on_host("gpuwhy_verdict_window_seconds", "Window that the verdicts cover.")

METRICS = (ACTIVE, CODE, LOST, CONFIDENCE, FUNCTION, CANNOT_SEE, RUN_ACTIVE, WINDOW)


def collect(view: View) -> Samples:
    """The verdicts over the window that ends with the last complete second."""
    yield WINDOW, (), view.about.window_s
    verdicts = view.verdicts or {}
    for entry in verdicts.get("gpus", ()):
        on = (entry.get("uuid"), entry.get("run"), entry.get("rank"))
        if on in view.seen:
            yield from _entry(view.run(on), entry)
    present = {run for _, run, _ in view.seen}
    for run in verdicts.get("runs", ()):
        if run["run"] in present:
            for cause in ANSWERS:
                yield RUN_ACTIVE, (run["run"], cause), cause == run["cause"]


def _entry(labels: tuple[str, ...], entry: Mapping[str, Any]) -> Samples:
    named = {cause["cause"] for cause in entry["causes"]} | {entry["cause"]}
    for cause in ANSWERS:
        yield ACTIVE, (*labels, cause), cause in named
    if entry["cause"] in ANSWERS:
        yield CODE, labels, ANSWERS.index(entry["cause"])
    for cause in entry["causes"]:
        name = cause["cause"]
        yield LOST, (*labels, name, cause.get("reason") or ""), cause.get("lost_ratio")
        yield CONFIDENCE, (*labels, name), cause.get("confidence")
        function = cause.get("function")
        if function:
            place = (function["name"], function["file"], str(function["line"]))
            yield FUNCTION, (*labels, name, *place), 1
    for blind in entry.get("cannot_see", ()):
        yield CANNOT_SEE, (*labels, blind["signal"]), 1
