"""Command lines fit to be shown: secrets masked, control characters gone, trimmed.

A command line is world-readable on its host, but not meant for a page, a metric or a recording.
Masking errs on the side of too much.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

MASK = "***"
LONGEST = 200
"""Characters kept of a command line."""

_SECRET = re.compile(
    r"(?i)token|secrets?|passw(?:or)?ds?|pass|passphrase|pwd|pw|auth|authorization|credentials?"
    r"|cookies?|bearer|dsn|signature|key|apikeys?|authtoken|accesskey|accesstoken"
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # of names like api-key, apiKey, API_KEY
_PAIR = re.compile(r"(?s)^(-{0,2}[+\w.\-/\[\]]+)([=:])(?!=*$)(.+)$")
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]*://)[^\s/@]+@")
_QUERY = re.compile(r"([?&;])([\w.\-]+)=[^&\s]+")
_HEADER = re.compile(r"(?i)\b(authorization\s*:\s*|bearer\s+|basic\s+)\S.*")
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:hf|gh[pousr]|github_pat|glpat|xox[abeprs]|xapp|sk|pk|rk|npm|pypi|dop_v1|nvapi|dapi|dckr_pat"
    r"|GOCSPX|glc|glsa|gsk|lsv2|lin_api|NRAK|ntn|pplx|pcsk|r8|wandb_v1|xai|fw|secret)[-_]"
    r"|ya29\.|hv[sb]\.|SG\.|A(?:KIA|SIA)|AKID|AKLT|LTAI|AIza|ATATT|eyJ|dapi(?=[0-9a-f]{16})"
    r"|key-(?=[0-9a-f]{16})|SK(?=[0-9a-f]{16})|\d{8,10}:AA)[\w\-.+/=~]{12,}"
    r"|[A-Za-z0-9]{14}\.atlasv1\.[\w\-]+"
    r"|[\w\-]{23,28}\.[\w\-]{6,7}\.[\w\-]{27,}"
    r"|\b[0-9a-fA-F]{32,}\b"
)
"""Keys that begin, or are built, as those of a service: clouds, forges, model hubs, trackers."""
_HOOK = re.compile(r"(?i)(hooks\.[\w.\-]+/|/(?:web)?hooks?/)[^\s\"']{8,}")
"""Addresses of robots in chats: whoever knows one may write there."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]{38,}={0,2}")
_OPAQUE = re.compile(r"[A-Za-z0-9+_.\-~]{12,}={0,2}")
_BETWEEN = re.compile(r"\*\*\*(?:[+/][A-Za-z0-9+]{0,14})*(?:[+/]\*\*\*|=)")
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
    argument = _HOOK.sub(rf"\g<1>{MASK}", argument)
    argument = _SHAPES.sub(MASK, argument)
    for form in (_BASE64, _OPAQUE):
        argument = form.sub(lambda found: MASK if _looks_random(found[0]) else found[0], argument)
    return _BETWEEN.sub(MASK, argument)


def _mask_query(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}={MASK}" if _is_secret(found[2]) else found[0]


def _looks_random(text: str) -> bool:
    """Whether it is no word and no number: all of it where it may be base64, else a piece of it."""
    if "/" in text:
        return _is_shuffled(re.sub(r"[^A-Za-z0-9]", "", text))
    return any(map(_is_shuffled, re.findall(r"[A-Za-z0-9]{12,}", text)))


def _is_shuffled(piece: str) -> bool:
    """Digits, small and capital letters follow each other by chance: in 62 % of places where all
    are as likely, in 40 % where one kind of letter is absent; in names it is less than 30 %."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in piece]
    changes = sum(a != b for a, b in pairwise(kinds)) / (len(kinds) - 1)
    of_each = [kinds.count(kind) for kind in "dul"]
    if min(of_each) > 0:
        return changes > 0.33
    return len(kinds) >= 20 and of_each[0] >= 4 and changes > 0.28
