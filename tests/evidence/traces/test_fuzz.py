"""Whatever a file holds, it is told or refused with a message; nothing else ever happens.

The ordinary run tries the corpus of each reader and some hundred inputs damaged by chance,
``./run check --full`` a million for each. ``bench/fuzz`` looks for new ones by coverage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.evidence.fuzz.corpus import FOLDER, inputs
from tests.evidence.fuzz.targets import TARGETS, refusals_are_answers
from tests.evidence.traces import mutation
from tests.evidence.traces.kineto_file import busy_steps
from tests.evidence.traces.test_ranks import rank_of

from gpuwhy.evidence.terminal import Style
from gpuwhy.evidence.traces import html, kineto, text
from gpuwhy.evidence.traces.analysis import analyse

ORDINARY, FULL = 100, 1_000_000
VALUES = [
    json.loads(file.text())
    for file in (busy_steps(steps=2, kernels=2, wait=500.0), rank_of(0, 300.0))
]

Inputs = Iterator[tuple[str, bytes]]


def tried(target: Callable[[bytes], None], tries: Inputs) -> None:
    """Raises AssertionError with the name of the input that fails."""
    for name, data in tries:
        try:
            target(data)
        except Exception as error:
            pytest.fail(f"{name}: {type(error).__name__}: {error}")


def damaged(name: str, count: int, first: int = 0) -> Inputs:
    """Inputs of the corpus, each damaged by chance; a name tells how to make one again."""
    known = inputs(name)
    for seed in range(first, first + count):
        yield f"seed {seed}", mutation.damaged(seed, known[seed % len(known)])


def test_every_reader_has_a_corpus() -> None:
    assert {path.stem for path in FOLDER.glob("*.zip")} == set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus(name: str) -> None:
    tried(TARGETS[name], ((f"input {i}", data) for i, data in enumerate(inputs(name))))


@pytest.mark.parametrize("name", TARGETS)
def test_some_damaged_files(name: str) -> None:
    tried(TARGETS[name], damaged(name, ORDINARY))


@pytest.mark.full
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("name", TARGETS)
def test_a_million_damaged_files(name: str) -> None:
    tried(TARGETS[name], damaged(name, FULL, first=10_000_000))


@pytest.mark.parametrize("seed", range(0, 100, 5))
def test_odd_values_in_whole_reports(seed: int, tmp_path: Path) -> None:
    """JSON that is sound while its values are not, through to both reports."""
    for one in range(seed, seed + 5):
        path = tmp_path / f"{one}.json"
        path.write_bytes(mutation.changed(one, VALUES[one % len(VALUES)]))
        with refusals_are_answers():
            analysis = analyse([kineto.read(path)])
            json.dumps(analysis.as_json(), allow_nan=False)
            assert html.render(analysis, [path.name])
            assert text.render(analysis, Style(), [path.name])
