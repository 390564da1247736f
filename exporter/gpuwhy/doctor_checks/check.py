"""What a check is: a name and a function that looks at a host and says one of four things."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gpuwhy.doctor_checks.host import Host

State = Literal["ok", "degraded", "failed", "not-applicable"]


@dataclass(frozen=True, slots=True)
class Result:
    """``found`` is what was met; ``lost`` and ``remedy`` are empty where nothing is wrong."""

    state: State
    found: str = ""
    lost: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One check; its function may raise, which counts as a failure of the check itself."""

    name: str
    look: Callable[[Host], Result]


def ok(found: str = "") -> Result:
    """Nothing is lost."""
    return Result("ok", found)


def degraded(found: str, lost: str, remedy: str) -> Result:
    """Something is lost, the rest goes on."""
    return Result("degraded", found, lost, remedy)


def failed(found: str, lost: str, remedy: str) -> Result:
    """What this check is about does not work at all."""
    return Result("failed", found, lost, remedy)


def not_applicable(found: str) -> Result:
    """There is nothing here to check, and why."""
    return Result("not-applicable", found)


def parts_of(version: str) -> tuple[int, ...]:
    """``v2.40.3-desktop.1`` -> (2, 40, 3, 1)."""
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", version)[:9])
