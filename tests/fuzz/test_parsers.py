"""Whatever a job, a driver, a file or a client writes: parsers answer or refuse, and soon.

The ordinary run tries some hundred inputs for each parser, ``./run check --full`` a million.
"""

from __future__ import annotations

import json
import os

import pytest
from tests.fuzz.coverage import KEPT, measure
from tests.fuzz.fuzz import attempt, fuzz
from tests.fuzz.targets import PARSERS

ORDINARY = 300
FULL = int(os.environ.get("FUZZ_INPUTS", "1000000"))


@pytest.mark.parametrize("name", PARSERS)
def test_the_corpus_is_answered_or_refused(name: str) -> None:
    inputs = PARSERS[name].inputs(name)
    assert inputs
    with PARSERS[name].around():
        for data in inputs:
            attempt(PARSERS[name], name, data)


@pytest.mark.parametrize("name", PARSERS)
def test_some_damaged_inputs(name: str) -> None:
    fuzz(name, ORDINARY, seed=1)


@pytest.mark.parametrize("name", PARSERS)
def test_the_corpus_still_reaches_what_it_reached(name: str) -> None:
    kept = json.loads(KEPT.read_text())[name]
    found = measure(name)
    # Line numbering of statements differs a little between versions of Python.
    assert found["run"] / found["lines"] > 0.95 * kept["run"] / kept["lines"]


@pytest.mark.full
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("name", PARSERS)
def test_a_million_damaged_inputs(name: str) -> None:
    fuzz(name, FULL, seed=0)
