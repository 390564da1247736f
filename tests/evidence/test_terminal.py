"""Text for a terminal: nothing foreign moves the cursor, colours only where they belong."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwhy.evidence.terminal import LONGEST_NAME, Style, plain, printable, ranges, style_for


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    def isatty(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def test_colours_only_on_a_terminal_that_wants_them() -> None:
    assert style_for(Terminal(), {}).color
    assert not style_for(Terminal(), {"NO_COLOR": "1"}).color
    assert not style_for(Terminal(), {"TERM": "dumb"}).color
    assert not style_for(io.StringIO(), {}).color
    assert Style(color=False).paint("x", "red") == "x"
    assert plain(Style(color=True).paint("x", "red", "bold")) == "x"


def test_a_terminal_without_block_characters_gets_plain_bars() -> None:
    assert not style_for(Terminal("ascii"), {}).blocks
    assert style_for(Terminal("utf-8"), {}).blocks
    assert Style(blocks=False).bar(0.5, 10) == "#####     "
    assert Style().bar(0.5, 10) == "█████     "


@given(st.floats(-1, 2), st.booleans())
def test_a_bar_has_its_width(share: float, blocks: bool) -> None:
    assert len(Style(blocks=blocks).bar(share, 20)) == 20


@given(st.text())
def test_nothing_unprintable_passes(text: str) -> None:
    shown = printable(text)
    assert all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in shown)


def test_what_is_harmless_stays_and_what_is_endless_is_cut() -> None:
    assert printable("Датасет.tokenize <lambda>") == "Датасет.tokenize <lambda>"
    assert printable("a\x1b[2J\nb\u202ec") == r"a\x1b[2J\nb\u202ec"
    assert len(printable("x" * 70_000)) == LONGEST_NAME + 3


@pytest.mark.parametrize(
    ("numbers", "text"), [([0], "0"), ([3, 0, 1, 2, 5], "0-3, 5"), ([], ""), ([1, 1, 2], "1-2")]
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


def test_a_column_wraps_beside_its_label() -> None:
    lines = Style(width=40).column("next", "word " * 12)
    assert lines[0].startswith("  next      word")
    assert all(len(line) <= 40 for line in lines)
    assert lines[1].startswith(" " * 12 + "word")
