"""Colours can be told apart, by people who see few of them too, and on dark and on white."""

from __future__ import annotations

import itertools
import math

import pytest
from grafana.source import palette

# How colours look to others: Machado, Oliveira, Fernandes 2009, severity 1.
SIGHT = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
APART = {"normal": 0.08, "protanopia": 0.08, "deuteranopia": 0.08, "tritanopia": 0.06}
"""Smallest distance in OKLab between two accounts; 0.02 can just be seen side by side."""
DARK, WHITE = "#181b1f", "#ffffff"
"""Backgrounds of Grafana's panels."""


def linear(color: str) -> tuple[float, ...]:
    """Linear RGB of #rrggbb."""
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)


def oklab(color: str, sight: str = "normal") -> tuple[float, float, float]:
    """OKLab of a colour as it is seen (Ottosson 2020)."""
    r, g, b = (
        min(1.0, max(0.0, sum(m * c for m, c in zip(row, linear(color), strict=True))))
        for row in SIGHT[sight]
    )
    l_ = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    m_ = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    s_ = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * l_ + 0.7936177850 * m_ - 0.0040720468 * s_,
        1.9779984951 * l_ - 2.4285922050 * m_ + 0.4505937099 * s_,
        0.0259040371 * l_ + 0.7827717662 * m_ - 0.8086757660 * s_,
    )


@pytest.mark.parametrize("sight", SIGHT)
def test_accounts_can_be_told_apart(sight: str) -> None:
    for (one, a), (other, b) in itertools.combinations(palette.ACCOUNTS.items(), 2):
        distance = math.dist(oklab(a, sight), oklab(b, sight))
        assert distance >= APART[sight], f"{one} and {other}: {distance:.3f} with {sight}"


@pytest.mark.parametrize("background", [DARK, WHITE])
def test_colours_show_on_the_background(background: str) -> None:
    colors = {**palette.ACCOUNTS, **palette.SIGNALS, **palette.PHASES}
    for name, color in colors.items():
        assert math.dist(oklab(color), oklab(background)) >= 0.1, f"{name} on {background}"


def test_signals_can_be_told_apart() -> None:
    for sight in ("normal", "protanopia", "deuteranopia"):
        for (one, a), (other, b) in itertools.combinations(palette.SIGNALS.items(), 2):
            distance = math.dist(oklab(a, sight), oklab(b, sight))
            assert distance >= 0.05, f"{one} and {other}: {distance:.3f} with {sight}"


def luminance(color: str) -> float:
    """Relative luminance as WCAG 2 has it."""
    r, g, b = linear(color)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("cause", palette.CAUSES)
def test_words_on_a_cause_can_be_read(cause: str) -> None:
    """Grafana writes black on what is brighter than 180 of 255, else white; 3 is enough for large
    text, and the words stand in a column of their own colour."""
    color = palette.CAUSES[cause]
    if cause in ("startup", "checkpoint", "evaluation"):
        return  # never a cause: no words stand on them
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    bright = (299 * red + 587 * green + 114 * blue) / 1000 > 180
    light, dark = (luminance(color), luminance("#202226")) if bright else (1.0, luminance(color))
    assert (light + 0.05) / (dark + 0.05) >= 3.0
