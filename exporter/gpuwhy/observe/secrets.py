"""Command lines fit to be shown: secrets masked, control characters gone, trimmed.

A command line is world-readable on its host, but not meant for a page, a metric or a recording.
Masking errs on the side of too much.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "***"
LONGEST = 200
"""Characters kept of a command line."""

_SECRET = re.compile(
    r"(?i)token|secrets?|passw(?:or)?ds?|pass|passphrase|pwd|pw|auth|authorization|credentials?"
    r"|cookies?|bearer|dsn|signature|key|apikeys?|authtoken|accesskey|accesstoken"
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # of names like api-key, apiKey, API_KEY
_PAIR = re.compile(r"(?s)^(-{0,2}[+\w.\-/\[\]]+)([=:])(.+)$")
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]*://)[^\s/@]+@")
_QUERY = re.compile(r"([?&;])([\w.\-]+)=[^&\s]+")
_HEADER = re.compile(r"(?i)\b(authorization\s*:\s*|bearer\s+|basic\s+)\S.*")
_SHAPES = re.compile(
    r"(?:hf|gh[pousr]|github_pat|glpat|xox[abeprs]|sk|pk|rk|npm|pypi|dop_v1|nvapi|dapi)[-_][\w\-]{12,}"
    r"|\bA(?:KIA|SIA)[A-Z0-9]{12,}"
    r"|\bAIza[\w\-]{20,}"
    r"|\beyJ[\w\-]{8,}\.[\w\-.]+"
    r"|\b[0-9a-fA-F]{40,}\b"
)
_OPAQUE = re.compile(r"[A-Za-z0-9+/_\-]{32,}={0,2}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def mask(argv: Sequence[str], longest: int = LONGEST) -> str:
    """One line of text for a command line, at most ``longest`` characters."""
    shown: list[str] = []
    before = ""
    for argument in argv:
        if before == "-c":  # a program in an argument: of no use here, and full of surprises
            shown.append("…")
        elif _names_a_secret(before) and not argument.startswith("-"):
            shown.append(MASK)
        else:
            shown.append(_mask_argument(argument))
        before = argument
    line = _CONTROL.sub(" ", " ".join(shown)).strip()
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _names_a_secret(option: str) -> bool:
    return option.startswith("-") and "=" not in option and _is_secret(option)


def _is_secret(name: str) -> bool:
    return any(_SECRET.fullmatch(word) for word in _WORDS.findall(name))


def _mask_argument(argument: str) -> str:
    pair = _PAIR.match(argument)
    if pair and _is_secret(pair[1]):
        return pair[1] + pair[2] + MASK
    argument = _HEADER.sub(rf"\g<1>{MASK}", argument)
    argument = _QUERY.sub(_mask_query, argument)
    argument = _USERINFO.sub(rf"\g<1>{MASK}@", argument)
    argument = _SHAPES.sub(MASK, argument)
    return _OPAQUE.sub(lambda found: MASK if _looks_random(found[0]) else found[0], argument)


def _mask_query(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}={MASK}" if _is_secret(found[2]) else found[0]


def _looks_random(text: str) -> bool:
    """Digits, small and capital letters well mixed, as a key is and a path or a name is not."""
    kinds = [
        sum(c.isdigit() for c in text),
        sum(c.islower() for c in text),
        sum(c.isupper() for c in text),
    ]
    return "/" not in text and all(count >= len(text) / 10 for count in kinds)
