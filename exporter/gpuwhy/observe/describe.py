"""The head of a recording: host, GPUs, software and limits, asked for in a process of its own."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from gpuwhy.observe import child
from gpuwhy.observe.host_info import describe_host, describe_limits, describe_software
from gpuwhy.observe.recording import Header, header

TIMEOUT_S = 30.0
"""Without persistence mode the driver wakes every GPU first, seconds each."""


def describe(note: str | None = None, timeout: float = TIMEOUT_S) -> Header:
    """The header of a recording that begins now on this host.

    A driver that hangs costs the GPUs and the versions, not the rest. Raises OSError where no
    process can be started.
    """
    process = child.start(["--describe"])
    try:
        answer, _ = process.communicate(timeout=timeout)
        found = json.loads(answer)
    except (subprocess.TimeoutExpired, ValueError):
        found = gather(gpus=False)
    finally:
        child.end(process, 0.0)
    return header(**found, note=note)


def gather(*, gpus: bool = True) -> dict[str, Any]:
    """What the header holds of this host, found in this process; each part on its own."""
    software = describe_software() | _py_spy()
    found: dict[str, Any] = _nvml() if gpus else {"error": "the driver did not answer"}
    cards: list[dict[str, Any]] = found.pop("gpus", [])
    return {
        "host": describe_host(),
        "gpus": cards,
        "software": {**software, **found},
        "limits": describe_limits(),
    }


def _nvml() -> dict[str, Any]:
    try:
        from gpuwhy.observe.nvml import describe as describe_nvml

        return describe_nvml()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _py_spy() -> dict[str, str]:
    try:
        from gpuwhy.observe.stacks import StackSource

        return StackSource().describe()
    except Exception:
        return {}
