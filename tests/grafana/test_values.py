"""What panels show is what was recorded: numbers read from the recording itself, from the job's
own truth (``*.expected.json``) and from the table of the recorded GPUs' means."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from typing import Any

import pytest
from tests.alerting.replay import RECORDINGS
from tests.grafana.prometheus import Prometheus
from tests.grafana.recorded import PRICE
from tests.grafana.test_queries import Answer, answers, of

from gpuwhy.observe.recording import read
from gpuwhy.pipeline import Pipeline

Dashboard = dict[str, Any]
POINTS = 0.05
"""How far a share may be off: the recordings are looped, and a loop is a restart."""


def observed(name: str, kind: str, field: str, gpu: int = 0) -> float:
    """Mean of a field over a recording."""
    _, observations = read(RECORDINGS / f"{name}.gpuwhy.gz")
    values = [
        float(o[field])
        for o in observations
        if o["kind"] == kind and field in o and o["uuid"] == f"recorded-{name}-{gpu}"
    ]
    assert values, f"{name} has no {kind}.{field}"
    return statistics.fmean(values)


def accounts(name: str, gpu: int = 0) -> dict[str, float]:
    """The run view of a recording's ledger as shares, straight from the pipeline."""
    pipeline = Pipeline()
    pipeline.feed(read(RECORDINGS / f"{name}.gpuwhy.gz")[1])
    pipeline.finish()
    entries = pipeline.verdicts()["gpus"]
    entry = next(e for e in entries if e["uuid"] == f"recorded-{name}-{gpu}" and e["run"] == name)
    shares: dict[str, float] = entry["accounts"]
    return shares


def mean(series: Iterable[dict[str, Any]]) -> float:
    """Mean over time of the only curve."""
    (curve,) = series
    return statistics.fmean(float(value) for _, value in curve["values"])


def number(series: Iterable[dict[str, Any]]) -> float:
    """The only value of an instant query."""
    (one,) = series
    return float(one["value"][1])


@pytest.fixture(scope="module")
def shown(dashboards: dict[str, Dashboard], prometheus: Prometheus) -> Any:
    """The answers of a dashboard for a recorded run."""
    known: dict[tuple[str, str], list[Answer]] = {}

    def ask(dashboard: str, run: str = "data_slow", **more: str) -> list[Answer]:
        key = (dashboard, run + repr(more))
        if key not in known:
            found = answers(dashboards[dashboard], prometheus, "recorded", run=run, **more)
            known[key] = list(found)
        return known[key]

    return ask


@pytest.mark.parametrize("run", ["data_slow", "ddp_straggler", "cpu_quota"])
def test_the_cause_of_the_run(shown: Any, run: str) -> None:
    expected = json.loads((RECORDINGS / f"{run}.expected.json").read_text())
    (row,) = of(shown("why", run), "What are the GPUs waiting for?")
    causes = {entry["cause"] for entry in expected["gpus"]}
    assert row["metric"]["cause"] in causes
    if run == "ddp_straggler":
        assert row["metric"]["cause"] == "host", "the late rank's, not the waiting one's"


def test_what_cannot_be_told_says_why(
    dashboards: dict[str, Dashboard], prometheus: Prometheus
) -> None:
    """The answer and the row of a rank whose stacks are out of sight."""
    page = list(answers(dashboards["why"], prometheus, "blind", run="item_sync"))
    for title in ("What are the GPUs waiting for?", "What next?"):
        (row,) = of(page, title)
        assert row["metric"]["answer"] == "unknown/no-stacks", title
    (rank,) = of(page, "Which rank, which function?")
    assert (rank["metric"]["cause"], rank["metric"]["case"]) == ("unknown", "unknown/no-stacks")
    assert rank["value"][1] == "NaN", "nobody knows how much"
    missing = {row["metric"]["signal"] for row in of(page, "What could not be seen?")}
    assert missing == {"stacks"}


def test_the_function_and_the_next_action(shown: Any) -> None:
    (cause,) = of(shown("why"), "Which rank, which function?")
    assert (cause["metric"]["cause"], cause["metric"]["next"]) == ("data", "data/waiting")
    (function,) = of(shown("why"), "Which rank, which function?", "C")
    assert "tokenize" in function["metric"]["function"]


@pytest.mark.parametrize("run", ["data_slow", "cpu_quota"])
def test_what_is_lost_and_what_it_costs(shown: Any, run: str) -> None:
    shares = accounts(run)
    lost = sum(shares.get(a, 0.0) for a in ("data", "launch", "host", "comm", "copy", "quota"))
    share = number(of(shown("why", run), "How much is lost?"))
    assert share == pytest.approx(lost, abs=POINTS)
    hours = number(of(shown("why", run), "What did that cost?"))
    assert hours == pytest.approx(share * 300 / 3600, rel=0.1)
    price = number(of(shown("why", run), "What did that cost?", "B"))
    assert price == pytest.approx(PRICE * hours, rel=1e-6)


def test_the_ledger(shown: Any) -> None:
    shares = accounts("data_slow")
    found = {
        series["metric"]["account"]: mean([series])
        for ref in "ABCDE"
        for series in of(shown("why"), "Where does the GPU time go?", ref)
    }
    assert found["compute"] == pytest.approx(shares["compute"], abs=POINTS)
    assert found["data"] == pytest.approx(shares["data"], abs=POINTS)
    assert sum(found.values()) == pytest.approx(1.0, abs=0.01)


def test_activity(shown: Any) -> None:
    title = "Is the GPU busy, and does it work?"
    busy = observed("data_slow", "gpm", "graphics")
    assert mean(of(shown("why"), title)) == pytest.approx(busy, abs=POINTS)
    active = observed("data_slow", "gpm", "sm")
    assert mean(of(shown("why"), title, "C")) == pytest.approx(active, abs=POINTS)


def test_power_and_temperature(shown: Any) -> None:
    power = observed("data_slow", "gpu", "power_mean_w")
    assert mean(of(shown("why"), "How much power, and what is the limit?")) == pytest.approx(
        power, rel=0.05
    )
    limit = mean(of(shown("why"), "How much power, and what is the limit?", "C"))
    assert limit == 700.0
    degrees = observed("data_slow", "gpu", "temperature_c")
    hot = mean(of(shown("why"), "How hot, and where does the card slow down?"))
    assert hot == pytest.approx(degrees, rel=0.05)


def test_clocks_and_memory(shown: Any) -> None:
    clock = observed("data_slow", "gpu", "sm_mhz") / 1980
    assert mean(of(shown("why"), "Do the clocks reach what they can?")) == pytest.approx(
        clock, abs=0.01
    )
    one = shown("one-gpu", gpu="recorded-data_slow-0")
    used = observed("data_slow", "gpu", "memory_used")
    assert mean(of(one, "How much of its memory is in use?")) == pytest.approx(used, rel=0.05)


def test_steps(shown: Any) -> None:
    rate = mean(of(shown("why"), "How fast does the run advance?"))
    assert 1 / rate == pytest.approx(0.096, rel=0.05), "a step of data_slow takes 96 ms"


def test_the_loader(shown: Any) -> None:
    page = shown("input-pipeline")
    assert number(of(page, "Workers at work")) == pytest.approx(1.0, abs=0.1)
    assert number(of(page, "Batches ready")) < 1.5
    waits = number(of(page, "Main threads in the loader"))
    assert waits == pytest.approx(0.65, abs=POINTS), "65 % of the host's time in next(loader)"


def test_the_quota(shown: Any) -> None:
    page = shown("input-pipeline", "cpu_quota")
    throttled = mean(of(page, "Is the job kept off the CPU?"))
    assert throttled > 0.8, "every period but those at a loop's begin"
    assert mean(of(page, "Does the run get the cores it needs?", "C")) == 1.0, "a quota of a core"


def test_who_waits_for_whom(shown: Any) -> None:
    page = shown("lockstep", "ddp_straggler")
    (late,) = of(page, "Which rank do the others wait for?")
    assert late["metric"]["rank"] == "1"
    waits = {
        s["metric"]["rank"]: float(s["value"][1]) for s in of(page, "Who waits for whom?", "B")
    }
    assert waits["0"] > 0.5 > waits["1"] + 0.4
    expected = statistics.fmean(accounts("ddp_straggler", gpu)["comm"] for gpu in (0, 1))
    shown_share = number(of(page, "How much do they wait for each other?"))
    assert shown_share == pytest.approx(expected, abs=2 * POINTS)


def test_the_fleet_adds_up(shown: Any) -> None:
    page = shown("fleet")
    assert number(of(page, "GPUs in sight")) == 4
    gpus = {
        series["metric"]["account"]: mean([series])
        for ref in "ABCDEF"
        for series in of(page, "Where does the fleet's GPU time go, in GPUs?", ref)
    }
    assert sum(gpus.values()) == pytest.approx(4, abs=0.1)
    rows = {
        (s["metric"]["run"], s["metric"]["account"]): float(s["value"][1])
        for s in of(page, "Which runs lose most?")
    }
    top = max(rows, key=lambda row: rows[row])
    assert top[0] == "ddp_straggler", "two GPUs, of which most time is lost"
    assert ("data_slow", "data") in rows and ("cpu_quota", "quota") in rows
    assert number(of(page, "Price of what is lost")) == pytest.approx(
        PRICE * number(of(page, "GPU-hours lost")), rel=1e-6
    )


def test_the_monitor_sees_its_sources(shown: Any) -> None:
    page = shown("monitor")
    states = {
        s["metric"]["source"]: float(s["value"][1]) for s in of(page, "What does each source say?")
    }
    assert states["nvml"] == states["stacks"] == states["gpm"] == 1
    assert not {"infiniband", "nccl_ras"} & states.keys(), "recorded without: nothing is amiss"
    assert number(of(page, "Recorded?")) == 1
