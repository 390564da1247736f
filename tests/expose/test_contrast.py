"""Contrast of the page's colours in both themes, computed as WCAG 2.1 has it: axe-core does not see
what is drawn on a canvas, and looks at one theme at a time."""

from __future__ import annotations

import re

import pytest

from gpuwhy.expose import assets

SHEET = assets.load()["style.css"].body.decode()
TEXT, LARGE_OR_PART = 4.5, 3.0
"""Smallest contrast of text (1.4.3), and of what bounds a control or shows the focus (1.4.11)."""
ON_GROUND = ("text", "soft", "lost", "well", "unknown", "link")
"""Words on the page and on its cards; ``soft`` is also what is written at the curves' axes."""
FRAMES = ("own", "library", "runtime")
"""Frames of a flame graph, with words on them."""


def theme(dark: bool) -> dict[str, str]:
    """The variables of a theme: the first block, and what the dark one changes."""
    light, night = re.findall(r":root \{(.*?)\}", SHEET, re.DOTALL)
    known = dict(re.findall(r"--(\w+): (#\w{6});", light))
    return known | dict(re.findall(r"--(\w+): (#\w{6});", night)) if dark else known


def luminance(color: str) -> float:
    """Relative luminance of #rrggbb."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """From 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_black_on_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_words_can_be_read(dark: bool) -> None:
    colors = theme(dark)
    pairs = [(word, ground) for word in ON_GROUND for ground in ("back", "card")]
    pairs += [("text", frame) for frame in FRAMES]
    for word, ground in pairs:
        assert contrast(colors[word], colors[ground]) >= TEXT, (word, ground)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_controls_and_the_focus_can_be_seen(dark: bool) -> None:
    colors = theme(dark)
    for part in ("line", "link"):
        for ground in ("back", "card"):
            assert contrast(colors[part], colors[ground]) >= LARGE_OR_PART, (part, ground)
