"""Command lines out of a profile: py-spy labels each process with its whole command line, secrets
included, and a profile is made to be sent on."""

from __future__ import annotations

import json
import re

_RAW = re.compile(r'(process \d+):"(?:[^"\n]|"(?!;))*"(?=;)')
_TITLE = re.compile(r"(<title>process \d+):[^<]*( \([\d,]+ samples, [\d.]+%\)</title>)")
_TEXT = re.compile(r"(<text[^>]*>process \d+):[^<]*(?=<)")  # redrawn from the title when shown
_NAME = re.compile(r"(process \d+):.*", re.DOTALL)


def hide_commands(text: str, form: str) -> str:
    """The profile with ``process 123:"python train.py --key=..."`` cut to ``process 123``."""
    if form == "raw":
        return _RAW.sub(r"\1", text)
    if form == "flamegraph":
        return _TEXT.sub(r"\1", _TITLE.sub(r"\1\2", text))
    profile = json.loads(text)
    for frame in profile["shared"]["frames"]:
        if not frame["file"]:
            frame["name"] = _NAME.sub(r"\1", frame["name"])
    return json.dumps(profile, separators=(",", ":"))
