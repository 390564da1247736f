"""Two command lines of a job, option by option: how many things differ between them."""

from __future__ import annotations

import re
import shlex

_OPTION = re.compile(r"--?[A-Za-z]|[A-Za-z_][\w.]*=")
"""``--workers``, ``-w``, and ``model.depth=4``, as configuration frameworks have it."""

Difference = dict[str, str | None]


def differences(before: str | None, after: str | None) -> list[Difference]:
    """One entry for each option that differs; one for the whole where its words do not tell.

    Words that are no option's (the script, a file) are compared in their order.
    """
    if before is None or after is None:
        return [{"what": "command line", "before": before, "after": after}]
    one, two = (_options(_words(line)) for line in (before, after))
    return [
        {"what": _named(key), "before": one.get(key), "after": two.get(key)}
        for key in dict.fromkeys((*one, *two))
        if one.get(key) != two.get(key)
    ]


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # cut off within a quotation
        return line.split()


def _options(words: list[str]) -> dict[str, str]:
    """Name -> value, ``""`` for a flag alone; the other words under their place."""
    made: dict[str, str] = {}
    place, following = 0, iter(range(len(words)))
    for i in following:
        word = words[i]
        if not _OPTION.match(word):
            made[str(place)] = word
            place += 1
            continue
        name, equals, value = word.partition("=")
        if not equals and i + 1 < len(words) and not _OPTION.match(words[i + 1]):
            value = words[next(following)]
        made[name] = f"{made[name]} {value}" if name in made else value
    return made


def _named(key: str) -> str:
    return "command line" if key.isdecimal() else f"command line {key}"
