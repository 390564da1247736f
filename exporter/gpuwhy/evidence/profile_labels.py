"""Command lines out of a profile: py-spy labels each process with its whole command line, secrets
included, and a profile is made to be sent on.

A command line may hold whatever separates frames in folded stacks, newlines and semicolons. So
those are made here, of the form in which a frame is an object; of a picture only what looks like a
frame is kept.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from gpuwhy.evidence.terminal import printable

_PROCESS = re.compile(r"(process \d+):.*", re.DOTALL)
_BOX = re.compile(
    r"<title>([^<]*?)( \([\d,]+ samples, [\d.]+%\)</title>\s*<rect[^>]*/>\s*<text[^>]*>)"
    r"([^<]*)(?=<)"
)
_PLACE = re.compile(r"(?::\d+|\.\w{1,4}|&gt;)\)\Z")
"""How a frame's label ends: ``(train.py:12)``, ``(train.py)`` or ``(<string>)``, in XML."""

HIDDEN = "part of a command line"


def without_commands(text: str, form: str) -> str:
    """The profile with ``process 123:"python train.py --key=..."`` cut to ``process 123``.

    ``text`` is py-spy's picture for ``flamegraph``, else its speedscope profile, of which
    ``folded`` makes lines. Raises ValueError where it is not what py-spy writes.
    """
    if form == "flamegraph":
        return _picture(text)
    profile = _parsed(text)
    for frame in _frames(profile):
        if not frame.get("file"):
            frame["name"] = _PROCESS.sub(r"\1", str(frame.get("name", "")))
    return _folded(profile) if form == "folded" else json.dumps(profile, separators=(",", ":"))


def _picture(svg: str) -> str:
    shown, boxes = _BOX.subn(_boxed, svg)
    if boxes != svg.count("<title>") or not boxes:
        raise ValueError("its picture is drawn in another way")  # nothing is known to be hidden
    return shown


def _boxed(found: re.Match[str]) -> str:
    label, between, short = found[1], found[2], found[3]
    kept = _PROCESS.sub(r"\1", label)
    if not _is_frame(kept):
        kept = HIDDEN
    return f"<title>{kept}{between}{short if kept == label else kept}"


def _is_frame(label: str) -> bool:
    """Whether a box may be called so: ``all``, ``process 7``, or ``main (train.py:12)``."""
    if label == "all" or (label.startswith("process ") and label[8:].isdigit()):
        return True
    return "\n" not in label and " (" in label and bool(_PLACE.search(label[-30:]))


def _folded(profile: dict[str, Any]) -> str:
    """``frame;frame;frame count`` lines."""
    labels = [_label(frame) for frame in _frames(profile)]
    counts: Counter[str] = Counter()
    try:
        for thread in profile["profiles"]:
            counts.update(";".join(labels[at] for at in stack) for stack in thread["samples"])
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError("a stack of frames that the profile does not hold") from error
    return "".join(f"{stack} {count}\n" for stack, count in sorted(counts.items()) if stack)


def _label(frame: dict[str, Any]) -> str:
    """As py-spy writes a frame, on one line and without what separates frames."""
    name, file, line = (frame.get(key) for key in ("name", "file", "line"))
    place = f"{file}:{line}" if line else f"{file}"
    return printable(f"{name} ({place})" if file else f"{name}").replace(";", ":")


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found


def _frames(profile: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        frames = profile["shared"]["frames"]
    except (KeyError, TypeError) as error:
        raise ValueError("no frames") from error
    if not isinstance(frames, list) or not all(isinstance(frame, dict) for frame in frames):
        raise ValueError("its frames are no objects")
    return frames
