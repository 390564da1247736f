"""Before and after, on recordings of real jobs and on traces whose answer is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.evidence.traces.kineto_file import busy_steps

from gpuwhy.cli import main
from gpuwhy.evidence.bootstrap import Estimate, draws, ratio, ratios
from gpuwhy.evidence.compare import Comparison, compare, slower
from gpuwhy.evidence.compare_samples import Sample, load

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def sample(recordings: Path) -> Callable[[str], Sample]:
    known: dict[str, Sample] = {}

    def get(name: str) -> Sample:
        if name not in known:
            known[name] = load(recordings / f"{name}.gpuwhy.gz")
        return known[name]

    return get


def test_a_loader_that_was_mended(sample: Callable[[str], Sample]) -> None:
    """Measured by the jobs themselves: steps of 96 and 51 ms."""
    made = compare(sample("data_slow"), sample("healthy"))
    assert made.step_time is not None
    assert made.step_time.before.value == pytest.approx(0.096, rel=0.03)
    assert made.step_time.after.value == pytest.approx(0.051, rel=0.03)
    assert re.match(r"1\.9x faster, data from (48|49|50)% to 0%", made.summary)
    assert made.accounts["data"].certain
    assert made.power is not None
    assert made.power.change.value > 200
    assert made.differs == []
    assert made.warning is None


def test_the_other_way_round_is_slower(sample: Callable[[str], Sample]) -> None:
    made = compare(sample("healthy"), sample("data_slow"))
    assert re.match(r"1\.9x slower, data from 0% to (48|49|50)%", made.summary)
    assert slower(made, 0.05) is True
    assert made.accounts["data"].change.value == pytest.approx(0.48, abs=0.03)


def test_a_run_against_itself(sample: Callable[[str], Sample]) -> None:
    made = compare(sample("healthy"), sample("healthy"))
    assert not any(change.certain for change in made.accounts.values())
    assert slower(made, 0.0) is False


def test_what_differs_is_told(sample: Callable[[str], Sample]) -> None:
    made = compare(sample("healthy"), sample("cpu_quota"))
    assert made.differs == [
        {"what": "limit: cpu_quota", "before": "none", "after": "1 cores"},
    ]
    assert made.warning is None  # one thing


def test_more_than_one_difference_is_warned_of(sample: Callable[[str], Sample]) -> None:
    made = compare(sample("healthy"), sample("ddp_healthy"))
    assert made.warning is not None
    assert "one thing at a time" in made.warning


def test_several_jobs_in_one_recording_are_warned_of(sample: Callable[[str], Sample]) -> None:
    assert sample("ddp_healthy").runs == 1  # two ranks, one run
    two = sample("shared_victim")
    assert two.runs == 2
    warning = compare(two, two).warning
    assert warning is not None
    assert "holds 2 jobs" in warning


def of_command(line: str) -> Sample:
    return Sample("x", "recording", np.ones(9), {"compute": np.ones(9)},
                  facts={"command line": line})  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "differs"),
    [
        ("python train.py --workers 0", "python train.py --workers 8", ["--workers"]),
        ("python train.py -w=0 --compile", "python train.py -w=8", ["-w", "--compile"]),
        ("python train.py lr=1 model.depth=2", "python train.py lr=2 model.depth=3",
         ["lr", "model.depth"]),
        ("python a.py --n 1", "python b.py --n 1", [""]),
        ("python a.py --lr -1e-3 x", "python a.py --lr -1e-4 x", ["--lr"]),
        ("python a.py --tag a --tag b", "python a.py --tag a --tag c", ["--tag"]),
        ("python a.py --name 'x", "python a.py --name 'y", ["--name"]),
    ],
)  # fmt: skip
def test_options_that_differ_are_told_one_by_one(
    before: str, after: str, differs: list[str]
) -> None:
    made = compare(of_command(before), of_command(after))
    assert [one["what"] for one in made.differs] == [f"command line {d}".strip() for d in differs]
    assert (made.warning is not None) == (len(differs) > 1)


def of_trace(folder: Path, name: str, **more: float) -> Sample:
    return load(busy_steps(steps=8, **more).write(folder / f"{name}.json"))  # type: ignore[arg-type]


def test_traces(tmp_path: Path) -> None:
    made = compare(of_trace(tmp_path, "a", wait=1_000.0), of_trace(tmp_path, "b"))
    assert made.step_time is not None
    assert made.step_time.before.value == pytest.approx(2_020e-6, rel=0.01)
    assert made.step_time.certain
    assert made.summary == "2.0x faster, data from 50% to 0%; no loss above 12% is left"


def test_the_largest_loss_left_is_named() -> None:
    before, after = (
        Sample(name, "trace", np.ones(10), {a: np.full(10, v) for a, v in accounts.items()},
               step_seconds=np.full(10, step), steps=np.ones(10))
        for name, step, accounts in (
            ("before", 0.21, {"data": 0.48, "compute": 0.45, "launch": 0.07}),
            ("after", 0.10, {"data": 0.03, "compute": 0.85, "launch": 0.12}),
        )
    )  # fmt: skip
    assert compare(before, after).summary == (
        "2.1x faster, data from 48% to 3%; launch overhead is now the largest, 12%"
    )


def noisy(mean: float, seed: int) -> Sample:
    steps = np.random.default_rng(seed).normal(mean, 0.2 * mean, 12)
    return Sample("x", "trace", steps, {"compute": steps}, step_seconds=steps, steps=np.ones(12))


def test_noise_is_no_slowdown() -> None:
    made = compare(noisy(1.0, 1), noisy(1.06, 5))
    assert made.step_time is not None
    assert not made.step_time.certain
    assert "within its noise" in made.summary
    assert slower(made, 0.01) is False


def test_without_step_times_nothing_is_claimed() -> None:
    bare = Sample("x", "recording", np.ones(9), {"compute": np.ones(9)})
    made: Comparison = compare(bare, bare)
    assert made.step_time is None
    assert slower(made, 0.05) is None
    assert "step time not known" in made.summary


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    held = 0
    for seed in range(200):
        values = np.random.default_rng(seed).normal(0.3, 0.1, 40)
        found = ratio(values, np.ones(40), draws(40, 1, seed))
        held += bool(found.low is not None and found.low <= 0.3 <= (found.high or 0.0))
    assert 0.88 <= held / 200 <= 0.99


def test_too_few_units_have_no_interval() -> None:
    assert draws(3, 1) is None
    assert draws(9, 5) is None
    assert ratios(np.ones(3), np.ones(3), None) is None
    assert ratio(np.ones(3), np.ones(3), None) == Estimate(1.0)


# -- the command -----------------------------------------------------------------------------------


def test_json(recordings: Path, capsys: Output) -> None:
    files = [str(recordings / f"{name}.gpuwhy.gz") for name in ("data_slow", "healthy")]
    assert main(["compare", "--json", *files]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["schema"] == 1
    assert made["accounts"]["data"]["change"]["high"] < -0.4


@pytest.mark.parametrize(("order", "status"), [((0, 1), 0), ((1, 0), 1)])
def test_fail_if_slower(
    order: tuple[int, int], status: int, tmp_path: Path, capsys: Output
) -> None:
    files = [
        str(busy_steps(steps=8, wait=wait).write(tmp_path / f"{wait:.0f}.json"))
        for wait in (200.0, 100.0)
    ]
    arguments = ["compare", files[order[0]], files[order[1]], "--fail-if-slower", "5%"]
    assert main(arguments) == status
    assert ("slower by more than 5 %" in capsys.readouterr().err) is (status == 1)


def test_a_recording_against_a_trace(recordings: Path, tmp_path: Path, capsys: Output) -> None:
    trace = busy_steps().write(tmp_path / "a.json")
    assert main(["compare", str(recordings / "healthy.gpuwhy.gz"), str(trace)]) == 2
    assert "two of one kind" in capsys.readouterr().err


def test_folders_of_ranks(tmp_path: Path, capsys: Output) -> None:
    for when, wait in (("before", 1_000.0), ("after", 0.0)):
        (tmp_path / when).mkdir()
        for rank in range(2):
            file = busy_steps(rank=rank, wait=wait)
            file.write(tmp_path / when / f"rank{rank}.json")
    assert main(["compare", str(tmp_path / "before"), str(tmp_path / "after")]) == 0
    assert "2.0x faster" in capsys.readouterr().out


@pytest.mark.parametrize("bad", ["absent.json", "absent.gpuwhy.gz"])
def test_bad_input(bad: str, tmp_path: Path, capsys: Output) -> None:
    trace = str(busy_steps().write(tmp_path / "a.json"))
    assert main(["compare", trace, str(tmp_path / bad)]) == 2
    assert bad in capsys.readouterr().err
