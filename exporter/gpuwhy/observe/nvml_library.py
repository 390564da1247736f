"""The one module that imports pynvml: calls by name, and every failure in one form.

nvidia-ml-py loads ``libnvidia-ml.so.1`` through the dynamic loader at ``nvmlInit`` and has a
function for each call of the driver's library. Old bindings lack some, old drivers others, and a
driver may refuse any of them: all of that becomes an :class:`NvmlError` with the name of the code.
"""

from __future__ import annotations

import ctypes
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pynvml

NAMES = {0: "SUCCESS"} | {
    value: name.removeprefix("NVML_ERROR_")
    for name, value in vars(pynvml).items()
    if name.startswith("NVML_ERROR_") and isinstance(value, int)
}
"""Error code -> its name in nvml.h without the prefix."""

UNSUPPORTED = frozenset(
    {
        "NOT_SUPPORTED",
        "FUNCTION_NOT_FOUND",
        "INVALID_ARGUMENT",
        "NO_PERMISSION",
        "ARGUMENT_VERSION_MISMATCH",
        "VGPU_ECC_NOT_SUPPORTED",
        "DEPRECATED",
    }
)
"""The answer will be the same for a while: not worth asking again at each poll."""

LOST = frozenset({"GPU_IS_LOST", "RESET_REQUIRED", "GPU_NOT_FOUND"})
"""This GPU answers nothing any more; the others go on."""

GONE = frozenset(
    {"UNINITIALIZED", "DRIVER_NOT_LOADED", "LIBRARY_NOT_FOUND", "LIB_RM_VERSION_MISMATCH"}
)
"""The library as a whole has to be initialised again."""

GARBAGE = "GARBAGE"
"""Our own code for an answer that the bindings could not decode."""


class NvmlError(Exception):
    """A call failed; ``code`` is its name in nvml.h ("NOT_SUPPORTED"), ``call`` the function."""

    def __init__(self, code: str, call: str) -> None:
        super().__init__(f"{call}: {code}")
        self.code = code
        self.call = call


def call(name: str, *args: Any) -> Any:
    """Call the function ``name`` of the bindings. Raises :class:`NvmlError` and nothing else."""
    function = getattr(pynvml, name, None)
    if function is None:
        raise NvmlError("FUNCTION_NOT_FOUND", name)
    try:
        return function(*args)
    except pynvml.NVMLError as error:
        # Code 0 is real: the bindings raise it where a list they ask for is empty.
        raise NvmlError(NAMES.get(error.value, f"ERROR_{error.value}"), name) from None
    except pynvml.NVMLLibraryMismatchError:  # the bindings call a newer version of the function
        raise NvmlError("FUNCTION_NOT_FOUND", name) from None
    except (UnicodeDecodeError, ValueError, TypeError, OSError, ctypes.ArgumentError):
        raise NvmlError(GARBAGE, name) from None


def constant(name: str) -> int:
    """A constant of nvml.h; 0 where the bindings are too old to have it."""
    return int(getattr(pynvml, name, 0))


def gpm_metrics(first: Any, second: Any, metrics: tuple[int, ...]) -> dict[int, float]:
    """GPM metrics over the interval between two samples; those refused are left out."""
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = len(metrics)
    request.sample1, request.sample2 = first, second
    for slot, metric in enumerate(metrics):
        request.metrics[slot].metricId = metric
    call("nvmlGpmMetricsGet", request)
    answers = [request.metrics[slot] for slot in range(len(metrics))]
    return {int(a.metricId): float(a.value) for a in answers if a.nvmlReturn == 0}


def number(value: Any, value_type: int) -> float | None:
    """The member of an ``nvmlValue_t`` that ``value_type`` names; None for an unknown type."""
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    return getattr(value, members[value_type]) if 0 <= value_type < len(members) else None


def address(handle: Any) -> int:
    """Where a handle points: two handles of one device are equal in nothing else."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def bindings_version() -> str | None:
    """Version of nvidia-ml-py; None where pynvml came in some other way."""
    try:
        return version("nvidia-ml-py")
    except PackageNotFoundError:
        return None
