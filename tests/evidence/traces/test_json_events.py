"""Events come out whole wherever the pieces of the file are cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.evidence.traces import json_events
from gpuwhy.evidence.traces.json_events import EventReader
from gpuwhy.evidence.traces.trace import TraceError

EVENTS = [{"ph": "X", "ts": 1.25, "name": 'a "quoted" }, { name'}, {"ph": "M"}, {"ts": -12e3}]
HEADER = {"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "list": [1, {"a": []}]}


def read(text: str, size: int = 7) -> tuple[list[Any], dict[str, Any]]:
    pieces = (text[i : i + size] for i in range(0, len(text), size))
    reader = EventReader("a.json", pieces)
    return list(reader), reader.header


@given(st.integers(1, 60), st.sampled_from([None, 0, 2]))
def test_cut_anywhere(size: int, indent: int | None) -> None:
    text = json.dumps({"first": 12345, "traceEvents": EVENTS, **HEADER}, indent=indent)
    events, header = read(text, size)
    assert events == EVENTS
    assert header == {"first": 12345, **HEADER}


def test_a_list_alone_is_a_trace_too() -> None:
    assert read(json.dumps(EVENTS)) == (EVENTS, {})


@pytest.mark.parametrize("bare", ["inf", "-inf", "nan", "-nan", "-nan(ind)"])
def test_numbers_that_are_none(bare: str) -> None:
    """Kineto has written bandwidths of copies without duration so."""
    text = '{"traceEvents": [{"a": 1}, {"bandwidth": BARE, "b": 2}, {"c": 3}]}'
    text = text.replace("BARE", bare)
    events, _ = read(text, 1000)
    assert events == [{"a": 1}, {"bandwidth": None, "b": 2}, {"c": 3}]


def test_an_error_far_from_the_end_does_not_wait_for_the_end() -> None:
    text = '{"traceEvents": [{"a": inf}, ' + '{"b": 1},' * 20_000 + '{"c": 3}]}'
    events, _ = read(text, 1 << 20)
    assert events[0] == {"a": None}
    assert len(events) == 20_002


def test_control_characters_in_names() -> None:
    assert read('[{"name": "a\nb"}]')[0] == [{"name": "a\nb"}]


@pytest.mark.parametrize("end", range(1, len(json.dumps({"traceEvents": EVENTS}))))
def test_every_truncation_is_told(end: int) -> None:
    with pytest.raises(TraceError, match=r"breaks off|is damaged"):
        read(json.dumps({"traceEvents": EVENTS})[:end])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "breaks off"),
        ("<html>", "is not JSON"),
        ("{1: 2}", "a key was expected"),
        ('{"a" 2}', "a colon"),
        ('{"traceEvents": [{"a": 1} {"b": }, {"c": 1}]}', "damaged near character"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_trace(text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(text, 1 << 20)


def test_a_value_without_end_is_not_kept_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_events, "LONGEST", 10_000)
    taken = 0

    def endless() -> Any:
        nonlocal taken
        yield '{"traceEvents": [{"name": "'
        while True:
            taken += 1
            yield "x" * 1000

    with pytest.raises(TraceError):
        list(EventReader("a.json", endless()))
    assert taken < 20
