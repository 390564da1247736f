"""The report of a verdict: what a person reads, and in which order."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.evidence.report import render
from gpuwhy.evidence.terminal import Style, plain
from gpuwhy.ledger.accounts import ACCOUNTS, CAUSES

WINDOW = {"start": 1796050000.0, "end": 1796050020.0}


def cause(name: str, lost: float, **more: Any) -> dict[str, Any]:
    return {
        "cause": name,
        "reason": None,
        "lost_ratio": lost,
        "confidence": 0.9,
        "evidence": [],
        "function": None,
        "next_action": "Do this.",
        **more,
    }


def entry(gpu: int | None, run: str | None, *causes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "gpu": gpu,
        "uuid": None if gpu is None else f"GPU-{gpu}",
        "mig": None,
        "run": run,
        "rank": gpu,
        "cause": causes[0]["cause"] if causes else "none",
        "causes": list(causes),
        "accounts": {"compute": 0.5, "data": 0.5},
        "cannot_see": [],
        **more,
    }


def verdict(*gpus: dict[str, Any], summaries: dict[str, str] | None = None) -> dict[str, Any]:
    runs = dict.fromkeys(gpu["run"] for gpu in gpus if gpu["run"] is not None)
    return {
        "schema": 1,
        "window": WINDOW,
        "gpus": list(gpus),
        "runs": [
            {
                "run": run,
                "ranks": [gpu["rank"] for gpu in gpus if gpu["run"] == run],
                "cause": "data",
                "summary": (summaries or {}).get(run, ""),
            }
            for run in runs
        ],
    }


def text(*gpus: dict[str, Any], **more: Any) -> str:
    return render(verdict(*gpus, **more), Style())


STARVED = cause(
    "data",
    0.48,
    evidence=[
        {"text": "batches ready", "value": 0.2, "unit": None, "source": "stacks"},
        {"text": "main thread in the loader", "value": 0.65, "unit": "ratio", "source": "stacks"},
    ],
    function={"name": "tokenize", "file": "/home/a/train.py", "line": 42},
    next_action="Cache what tokenize makes.",
)


def test_the_verdict_comes_first_then_evidence_function_next_accounts() -> None:
    shown = text(entry(0, "job", STARVED), summaries={"job": "starved"})
    order = [
        "job  1 rank",
        "starved",
        "GPU 0, rank 0: waiting for the input pipeline",
        "48 % of the time, 9.6 of 20.0 GPU-seconds",
        "batches ready: 0.2 [stacks]",
        "main thread in the loader: 65 % [stacks]",
        "tokenize  /home/a/train.py:42",
        "Cache what tokenize makes.",
        "compute",
        "Watched 20 s, 2026-11-30 14:46:40 to 14:47:00 UTC",
    ]
    places = [shown.index(part) for part in order]
    assert places == sorted(places)


def test_a_healthy_job_is_said_to_be_healthy() -> None:
    assert "GPU 0, rank 0: healthy" in text(entry(0, "job"))


def test_unknown_says_what_is_missing_and_the_remedy() -> None:
    blind = {"signal": "stacks", "why": "py-spy was refused", "remedy": "run as root"}
    shown = text(entry(0, "job", cause="unknown", cannot_see=[blind]))
    assert "cannot tell" in shown
    assert "py-spy was refused" in shown
    assert "remedy: run as root" in shown


def test_what_cannot_be_seen_is_said_once_with_whom_it_concerns() -> None:
    blind = {"signal": "gpm", "why": "needs Hopper", "remedy": ""}
    both = text(entry(0, "a", cannot_see=[blind]), entry(1, "b", cannot_see=[blind]))
    assert both.count("needs Hopper") == 1
    assert "(GPU" not in both
    assert "needs Hopper (GPU 0, rank 0)" in text(entry(0, "a", cannot_see=[blind]), entry(1, "b"))


def test_a_limit_at_its_default_is_information() -> None:
    shown = text(entry(0, "job", cause("throttle", 0.27, reason="at-default-limit")))
    assert "information" in shown
    coloured = render(
        verdict(entry(0, "job", cause("throttle", 0.27, reason="at-default-limit"))),
        Style(color=True),
    )
    assert "\x1b[31" not in coloured, "no red for information"


def test_a_gpu_without_a_job_and_a_job_without_a_gpu() -> None:
    shown = text(
        entry(1, None, rank=None, accounts={"free": 1.0}),
        entry(None, "job", STARVED, rank=0, accounts={}),
    )
    assert "GPU 1: no training job holds it" in shown
    assert "No GPU in sight, rank 0: waiting for the input pipeline" in shown
    assert "none: no GPU of this job is in sight" in shown
    assert "48 % of the host's time, over 20 s" in shown, "what is not seen is not counted"


def test_runs_stay_together_and_equal_gpus_are_told_once() -> None:
    gpus = [entry(n, "a" if n % 2 == 0 else "b", cause("comm", 0.5)) for n in range(8)]
    shown = text(*gpus)
    assert shown.index("a  4 ranks") < shown.index("b  4 ranks")
    assert "GPUs 0, 2, 4, 6, ranks 0, 2, 4, 6: waiting in collectives" in shown
    assert shown.count("Do this.") == 2
    assert "40.0 of 80.0 GPU-seconds" in shown


def test_the_straggler_and_those_that_wait_stand_apart() -> None:
    shown = text(
        entry(0, "job", cause("comm", 0.75, reason="waiting")),
        entry(1, "job", cause("host", 0.8, reason="straggler")),
        summaries={"job": "rank 1 keeps the others waiting"},
    )
    assert shown.index("rank 1 keeps the others waiting") < shown.index("GPU 0, rank 0")
    assert "GPU 1, rank 1: waiting while the host" in shown
    assert "the other ranks wait" in " ".join(shown.split())


def test_two_causes_are_both_told() -> None:
    shown = text(entry(0, "job", STARVED, cause("host", 0.2)))
    assert "Also waiting while the host does other work" in shown


def test_eighty_columns_hold_it_and_no_control_character_passes() -> None:
    hostile = cause(
        "data",
        0.3,
        function={"name": "f\x1b[2J\n", "file": "/a\u202eb.py", "line": 1},
        next_action="x" * 400,
        evidence=[{"text": "t\r", "value": 1, "unit": "\n", "source": "s\t"}],
    )
    shown = text(entry(0, "run\x07", hostile), summaries={"run\x07": "s\x1b"})
    assert not set(shown) & {"\x1b", "\x07", "\r", "\t", "\u202e"}
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_colours_change_nothing_but_colours() -> None:
    made = verdict(entry(0, "job", STARVED), entry(1, None, rank=None, accounts={"free": 1.0}))
    assert plain(render(made, Style(color=True))) == render(made, Style())
    assert "\x1b" in render(made, Style(color=True))


def test_iso_times_are_read_as_well() -> None:
    made = verdict(entry(0, "job"))
    made["window"] = {"start": "2026-11-30T14:46:40Z", "end": "2026-11-30T14:47:00Z"}
    assert "14:46:40 to 14:47:00 UTC\nrecorded" in render(made, Style(), "recorded")


@pytest.mark.parametrize("name", [*CAUSES, "unknown"])
def test_every_cause_has_words(name: str) -> None:
    shown = text(entry(0, "job", cause(name, 0.5)))
    assert f"rank 0: {name}\n" not in shown


@given(
    st.dictionaries(st.sampled_from(ACCOUNTS), st.floats(0, 1), max_size=5),
    st.one_of(st.none(), st.floats(0, 1), st.text()),
    st.sampled_from([*CAUSES, "none", "unknown", "a-new-one"]),
)
def test_any_object_of_the_form_is_rendered_and_left_alone(
    accounts: dict[str, float], confidence: object, name: str
) -> None:
    made = verdict(
        entry(0, "job", cause(name, 0.5, confidence=confidence), accounts=accounts, cause=name)
    )
    before = copy.deepcopy(made)
    assert "GPU 0" in render(made, Style())
    assert made == before
