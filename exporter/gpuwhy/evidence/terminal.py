"""Text for a terminal: colours, bars, wrapped columns, foreign names made harmless."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TextIO

COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
LONGEST_NAME = 300
EIGHTHS = " ▏▎▍▌▋▊▉"
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Style:
    """How wide, and whether colours and block characters may be used."""

    width: int = 80
    color: bool = False
    blocks: bool = True

    def paint(self, text: str, *colours: str) -> str:
        """The text in colours, where they are on."""
        codes = ";".join(COLOURS[colour] for colour in colours)
        return f"\x1b[{codes}m{text}\x1b[0m" if self.color and codes and text else text

    def bar(self, ratio: float, cells: int) -> str:
        """A bar of at most ``cells`` characters, padded with blanks."""
        ratio = min(1.0, max(0.0, ratio))
        if not self.blocks:
            return ("#" * round(ratio * cells)).ljust(cells)
        eighths = round(ratio * cells * 8)
        return ("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()).ljust(cells)

    def column(self, label: str, text: str, indent: int = 2, column: int = 10) -> list[str]:
        """``label`` once, dimmed, then the text wrapped in a column beside it."""
        wrapped = textwrap.wrap(text, max(self.width, 40) - indent - column, break_on_hyphens=False)
        head = " " * indent + self.paint(label, "dim") + " " * max(1, column - len(label))
        rest = " " * (indent + column)
        lines = [(rest if index else head) + line for index, line in enumerate(wrapped)]
        return lines or [head.rstrip()]


def style_for(
    stream: TextIO, environ: Mapping[str, str] | None = None, width: int | None = None
) -> Style:
    """What the stream can show: colours on a terminal only, never with ``NO_COLOR`` set."""
    environ = os.environ if environ is None else environ
    terminal = stream.isatty()
    color = terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    if width is None:
        width = min(shutil.get_terminal_size((80, 24)).columns, 100) if terminal else 80
    return Style(width=width, color=color, blocks=_can_encode(stream, "█▏"))


def printable(text: object) -> str:
    """A foreign text in which nothing can move the cursor or fake a line; cut when endless."""
    shown = str(text)
    if len(shown) > LONGEST_NAME:
        shown = shown[:LONGEST_NAME] + "..."
    return "".join(_harmless(character) for character in shown)


def ranges(numbers: Iterable[int]) -> str:
    """``0-3, 5`` for 0, 1, 2, 3, 5."""
    groups: list[list[int]] = []
    for number in sorted(set(numbers)):
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ", ".join(
        str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in groups
    )


def plain(text: str) -> str:
    """The text without colours."""
    return _ESCAPE.sub("", text)


def _harmless(character: str) -> str:
    if unicodedata.category(character) in UNPRINTABLE:
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character


def _can_encode(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
