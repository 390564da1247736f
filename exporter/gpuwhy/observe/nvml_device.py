"""One GPU or MIG instance: a handle, and a memory of what it does not support."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpuwhy.observe.nvml_library import GONE, LOST, NAMES, UNSUPPORTED, NvmlError, call, number
from gpuwhy.observe.observation import Observation

RETRY_S = 60.0
"""An unsupported call is tried again after this long: a driver or a mode may have changed."""

SENTINELS = frozenset({2**64 - 1, 2**32 - 1, 2**63 - 1, 2**31 - 1, -(2**31), -(2**63)})
"""What drivers put where they have no value (nvml.h: NVML_VALUE_NOT_AVAILABLE, and kin)."""

EMPTY = ("", "SUCCESS", "NOT_FOUND", "NO_DATA")
"""Codes that mean an empty answer and no failure."""

Field = int | tuple[int, int]
"""A field id of nvmlDeviceGetFieldValues, or (field id, scope)."""

State = tuple[bool, str, str]
"""(up, why, remedy) of one source on one device."""


class Device:
    """Every read may be refused, each on its own; only a lost GPU or library ends the round."""

    def __init__(self, handle: Any, uuid: str, index: int, parent: Device | None = None) -> None:
        self.handle = handle
        self.uuid = uuid
        self.index = index
        self.parent = parent
        self.gpu_instance: int | None = None
        self.compute_instance: int | None = None
        self.mig_enabled = False  # a GPU in MIG mode
        self.virtual = False  # a vGPU, seen from its guest
        self.now = 0.0
        self.unknown = 0  # calls since begin() that failed with UNKNOWN
        self.failures = 0  # cumulative, without refusals
        self.states: dict[str, State] = {}
        self.missing: dict[str, list[str]] = {}  # by source: fields that this device does not give
        self.notes: dict[str, str] = {}  # and why
        self._refused: dict[tuple[Any, ...], tuple[str, float]] = {}

    def begin(self, now: float) -> None:
        """Start a round of reads at ``now``."""
        self.now, self.unknown = now, 0

    def get(self, name: str, *args: Any) -> Any:
        """The value of ``name(handle, *args)``, or None. Raises NvmlError if GPU or library is
        gone."""
        return self.ask(name, *args)[0]

    def ask(self, name: str, *args: Any, key: tuple[Any, ...] | None = None) -> tuple[Any, str]:
        """(value, "") or (None, code). ``key`` tells calls apart whose arguments vary."""
        key = (name, *args) if key is None else (name, *key)
        refused = self._refused_until(key)
        if refused:
            return None, refused
        try:
            return call(name, self.handle, *args), ""
        except NvmlError as error:
            return None, self._failed(key, error)

    def fields(self, ids: Iterable[Field]) -> dict[Field, float]:
        """Field values in one call, those given alone, without sentinels."""
        wanted = [i for i in ids if not self._refused_until(("field", i))]
        values = self.ask("nvmlDeviceGetFieldValues", wanted, key=())[0] if wanted else None
        found: dict[Field, float] = {}
        for field, entry in zip(wanted, values or (), strict=False):
            code = NAMES.get(entry.nvmlReturn, "") if entry.nvmlReturn else ""
            if code in UNSUPPORTED:
                self._refused[("field", field)] = (code, self.now)
            value = None if entry.nvmlReturn else number(entry.value, entry.valueType)
            if value is not None and value not in SENTINELS:
                found[field] = value
        return found

    def say(self, source: str, up: bool, why: str = "", remedy: str = "") -> None:
        """Set the state of a source on this device."""
        self.states[source] = (up, why, remedy)

    def _refused_until(self, key: tuple[Any, ...]) -> str:
        code, since = self._refused.get(key, ("", 0.0))
        return code if code and since <= self.now < since + RETRY_S else ""

    def _failed(self, key: tuple[Any, ...], error: NvmlError) -> str:
        if error.code in LOST or error.code in GONE:
            raise error
        if error.code in UNSUPPORTED:
            self._refused[key] = (error.code, self.now)
        elif error.code not in EMPTY:
            self.failures += 1
            self.unknown += error.code == "UNKNOWN"
        return error.code


def put(
    out: Observation, name: str, value: Any, *, low: float, high: float, scale: float = 1.0
) -> None:
    """Set ``out[name]`` to ``value * scale`` where the result lies in [low, high]; else leave it
    absent: a driver's sentinel or garbage is no value."""
    if value is None or value in SENTINELS:
        return
    scaled = round(value * scale, 6) if scale != 1.0 else value
    if low <= scaled <= high:  # False for NaN
        out[name] = scaled
