"""The text of an option becomes a value, or a ValueError that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwhy import values


@pytest.mark.parametrize(
    ("text", "expected"),
    [("20s", 20), ("5m", 300), ("1h30m", 5400), ("0.5s", 0.5), ("500ms", 0.5), (" 2d ", 172800)],
)
def test_durations(text: str, expected: float) -> None:
    assert values.seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text", ["", "20", "s", "-5s", "5 s", "1e3s", "20sec", "١s", "5m-1s", "nan"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        values.seconds(text)


def test_a_duration_outside_its_range_names_the_range() -> None:
    with pytest.raises(ValueError, match=r"'500ms' is outside the range 1s to 600s"):
        values.duration(1, 600)("500ms")


@pytest.mark.parametrize(("text", "expected"), [("2%", 0.02), ("0.02", 0.02), ("100 %", 1.0)])
def test_ratios(text: str, expected: float) -> None:
    assert values.ratio(0.001, 1)(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["2", "0%", "nan%", "inf", "two", ""])
def test_what_is_no_ratio(text: str) -> None:
    with pytest.raises(ValueError, match="is"):
        values.ratio(0.001, 1)(text)


def test_integers_and_numbers_keep_their_range() -> None:
    assert values.integer(1, 10)("7") == 7
    assert values.number(0, 5)("2.5") == 2.5
    for bad in ("0", "11", "7.0", "9" * 40, "0x7"):
        with pytest.raises(ValueError, match=bad[:5]):
            values.integer(1, 10)(bad)
    for bad in ("nan", "inf", "-1", "x"):
        with pytest.raises(ValueError, match=bad):
            values.number(0, 5)(bad)


@pytest.mark.parametrize(("text", "expected"), [("Yes", True), ("1", True), ("off", False)])
def test_booleans(text: str, expected: bool) -> None:
    assert values.boolean(text) is expected


def test_what_is_no_boolean() -> None:
    with pytest.raises(ValueError, match="'perhaps' is neither true nor false"):
        values.boolean("perhaps")


@pytest.mark.parametrize("text", ["127.0.0.1:9877", ":9877", "[::1]:0", "gpu-host.example:80"])
def test_addresses(text: str) -> None:
    assert values.address(text) == text


@pytest.mark.parametrize("text", ["9877", "host:", "host:99999", "::1:9877", "a b:1", "h:1/x", ""])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        values.address(text)


def test_paths_and_texts() -> None:
    assert values.path("~/x") == Path.home() / "x"
    assert values.text(" GPU-1 ") == "GPU-1"
    assert values.one_of("a", "b")("b") == "b"
    for parse, bad in ((values.path, "\0"), (values.text, "  "), (values.one_of("a"), "b")):
        with pytest.raises(ValueError):
            parse(bad)


PARSERS = (
    values.seconds,
    values.duration(1, 10),
    values.number(0, 1),
    values.integer(0, 9),
    values.ratio(0, 1),
    values.boolean,
    values.one_of("a"),
    values.text,
    values.path,
    values.address,
)


@given(st.sampled_from(PARSERS), st.text(max_size=30))
def test_any_text_gives_a_value_or_a_value_error(parse: object, text: str) -> None:
    assert callable(parse)
    try:
        parse(text)
    except ValueError as error:
        assert str(error)
