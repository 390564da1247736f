"""What gpuwhy says of the files that were made, each in a line beside the job's own truth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from names import PLANTED, STORY

Ask = Callable[[Sequence[object]], tuple[int, str]]
"""Arguments of gpuwhy -> exit status and output."""


def lines(work: Path, ask: Ask) -> Iterator[Callable[[], str]]:
    """One piece of work for each line, of what the jobs left; each keeps the whole answer too."""
    for name in PLANTED:
        if (work / f"{name}.json.gz").exists():
            yield partial(of_trace, work, ask, name)
    for form in ("json.gz", "gpuwhy.gz"):
        for one, two in pairwise(STORY):
            if all((work / f"{name}.{form}").exists() for name in (one, two)):
                yield partial(of_pair, work, ask, one, two, form)
    for name in STORY:
        if (work / f"{name}.gpuwhy.gz").exists():
            yield partial(of_recording, work, ask, name)


def late_lines(work: Path, ask: Ask) -> Iterator[Callable[[], str]]:
    """The same of what is made after them."""
    if list(work.glob("two_ranks*-rank*.json.gz")):
        yield partial(of_ranks, work, ask)
    for name in ("kernels.ncu-rep", "kernels.csv", "kernels_raw.csv"):
        if (work / name).exists():
            yield partial(of_kernels, work, ask, name)


def of_trace(work: Path, ask: Ask, name: str) -> str:
    """A job's trace: cause and step time as told, and as the job knows them."""
    answer = _json(work, ask, f"{name}.trace", ["trace", "--json", work / f"{name}.json.gz"])
    _text(work, ask, f"{name}.trace", ["trace", work / f"{name}.json.gz"])
    (entry,) = answer["ranks"]
    truth = json.loads((work / f"{name}.truth.json").read_text())
    steps = answer["tables"]["steps"]["rows"]
    mean = sum(row["time"] for row in steps) / len(steps)
    lost = truth.get("lost")
    return (
        f"{name:16} told {_cause(entry)} | truth: lost {lost:.0%} by the fault | step "
        f"{1e3 * mean:.2f} ms in the trace, {1e3 * truth['step_seconds']:.2f} without profiler, "
        f"{1e3 * truth['mended_step_seconds']:.2f} mended | {_accounts(entry)}"
    )


def of_ranks(work: Path, ask: Ask) -> str:
    """Two ranks, of which the second comes 50 ms late."""
    files = sorted(work.glob("two_ranks*-rank*.json.gz"))
    answer = _json(work, ask, "two_ranks.trace", ["trace", "--json", *files])
    _text(work, ask, "two_ranks.trace", ["trace", *files])
    told = [
        f"rank {entry['rank']} {_cause(entry)} ({_accounts(entry)})" for entry in answer["ranks"]
    ]
    return f"two ranks        {'; '.join(told)} | {answer['summary']}"


def of_pair(work: Path, ask: Ask, one: str, two: str, form: str) -> str:
    """An act of the story against the next."""
    files = [work / f"{one}.{form}", work / f"{two}.{form}"]
    name = f"compare.{one}.{two}.{form.partition('.')[0]}"
    answer = _json(work, ask, name, ["compare", "--json", *files])
    _text(work, ask, name, ["compare", *files])
    truth = [json.loads((work / f"{act}.truth.json").read_text()) for act in (one, two)]
    parts = [t if form == "json.gz" else t["while_recorded"] for t in truth]
    factor = parts[0]["step_seconds"] / parts[1]["step_seconds"]
    return (
        f"compare {one[:7]} {two[:7]} {form}: {answer['summary']} | truth: {factor:.2f}x | "
        f"{answer['warning']}"
    )


def of_recording(work: Path, ask: Ask, name: str) -> str:
    """A recording of an act."""
    file = work / f"{name}.gpuwhy.gz"
    answer = _json(work, ask, f"{name}.diagnose", ["diagnose", "--json", "--recording", file])
    _text(work, ask, f"{name}.diagnose", ["diagnose", "--recording", file])
    told = [f"{_cause(entry)} ({_accounts(entry)})" for entry in answer["gpus"]]
    truth = json.loads((work / f"{name}.truth.json").read_text())["while_recorded"]
    return (
        f"recording {name}: {'; '.join(told)} | step {1e3 * truth['step_seconds']:.2f} ms while "
        f"recorded | {file.stat().st_size} bytes"
    )


def of_kernels(work: Path, ask: Ask, name: str) -> str:
    """Nsight Compute's kernels, by the report itself or by its CSV."""
    answer = _json(work, ask, f"{name}.trace", ["trace", "--json", work / name])
    _text(work, ask, f"{name}.trace", ["trace", work / name])
    rows = answer["tables"]["kernels"]["rows"]
    told = [f"{row['kernel'][:28]} {row['bound']} {row.get('stall', '-')}" for row in rows]
    return f"{name}: {'; '.join(told)}"


def _json(work: Path, ask: Ask, name: str, arguments: Sequence[object]) -> dict[str, Any]:
    status, text = ask(arguments)
    (work / f"{name}.answer.json").write_text(text)
    if status:
        raise ValueError(
            f"{' '.join(map(str, arguments[:2]))} {name}: status {status}: {text[-300:]}"
        )
    return dict(json.loads(text))


def _text(work: Path, ask: Ask, name: str, arguments: Sequence[object]) -> None:
    (work / f"{name}.answer.txt").write_text(ask(arguments)[1])


def _cause(entry: dict[str, Any]) -> str:
    causes = [f"{c['cause']} {c['lost_ratio']:.0%}" for c in entry["causes"]]
    return f"{entry['cause']} [{', '.join(causes)}]"


def _accounts(entry: dict[str, Any]) -> str:
    shares = sorted(entry["accounts"].items(), key=lambda one: -one[1])
    return ", ".join(f"{name} {share:.2f}" for name, share in shares[:5])
