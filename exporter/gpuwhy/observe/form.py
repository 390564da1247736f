"""The form of observations that come from a file, held against the contract.

A recording may be damaged, edited or made by something else. What passes here has the fields that
the code after ``observe/`` relies on, in the types of ``observation`` and within ``LIMITS``. Kinds
and fields that are not known pass unread: a newer recorder wrote them.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gpuwhy.observe import observation as contract
from gpuwhy.observe.form_checks import (
    Check,
    Limits,
    either,
    instance,
    list_of,
    map_of,
    number,
    object_of,
    one_of,
    row_of,
)
from gpuwhy.observe.observation import Observation

ANY: Limits = (-1e18, 1e18)  # beyond any count of bytes, and no sum of them overflows
SHARE: Limits = (0.0, 1.001)  # of a whole; the driver rounds
SHARE_OF_CORES: Limits = (0.0, 1e6)
NUMBER: Limits = (0.0, 2.0**53)  # an exact integer in any JSON reader
SECONDS: Limits = (0.0, 4102444800.0)  # Unix time, to the year 2100: all of it can be printed

LIMITS: Mapping[str, Limits] = {
    "t": SECONDS,
    "start": SECONDS,
    "dt": (0.0, 1e6),  # what an observation covers, seconds; 0: an instant
    **dict.fromkeys(
        (
            "graphics",
            "sm",
            "occupancy",
            "tensor",
            "dram",
            "utilization",
            "memory_utilization",
            "sm_ratio",
        ),
        SHARE,
    ),
    **dict.fromkeys(("pid", "ppid", "rank_pid", "tid", "rank", "local_rank", "world_size"), NUMBER),
    **dict.fromkeys(("gpu", "pids", "port", "cpus"), NUMBER),
    **dict.fromkeys(("cpu", "main_cpu", "run_delay", "quota_cores"), SHARE_OF_CORES),
    **dict.fromkeys(("memory_used", "memory_total", "reads", "failures", "lost"), (0.0, 1e18)),
    **dict.fromkeys(("power_w", "power_mean_w", "sm_mhz", "mem_mhz"), (0.0, 1e7)),
    "reasons": (0.0, 2.0**64),
}
"""What a number of this name may be, lowest and highest; ``ANY`` where none stands here."""

REQUIRED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("gpu", "gpu_info", "gpu_limits", "gpu_health", "xid"), ("uuid",)),
    "gpm": ("uuid", "dt"),
    "ring": ("uuid", "ring", "dt", "values"),
    "gpu_reasons": ("uuid", "seconds"),
    "gpu_processes": ("uuid", "processes"),
    "sm_share": ("uuid", "dt", "shares"),
    "processes": ("processes",),
    "cgroup": ("path",),
    "stack": ("pid", "dt", "frames"),
    "locals": ("pid", "values"),
    "network_port": ("device", "port"),
    "nccl": ("communicators",),
    "source": ("source", "up"),
}
"""Without these an observation says nothing, or nothing of whom."""


def wrong(observation: Observation) -> str | None:
    """What is wrong with an observation, naming kind and field; None where nothing is."""
    kind = observation["kind"]
    said = _KINDS.get(kind, _UNKNOWN)(observation)
    return None if said is None else f"{kind}{said}"


def _of(hint: Any, name: str) -> Check:
    """The check of one annotation of the contract."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return one_of(arguments)
    if origin in (Union, types.UnionType):
        return either([_of(one, name) for one in arguments])
    if origin is list:
        return list_of(_of(arguments[0], name))
    if origin is dict:
        return map_of(_of(arguments[1], name))
    if hint in (int, float):
        return number(LIMITS.get(name, ANY), integer=hint is int)
    return instance(hint, _WORDS[hint]) if hint in _WORDS else _good


def _good(_: Any) -> str | None:
    return None


_WORDS = {str: "text", bool: "true or false", type(None): "null"}
_PID = _of(int, "pid")
_TEXT = _of(str, "")
FRAME = row_of(_TEXT, _TEXT, _of(int, "line"), _of(str | None, "call"), least=3)

_PROCESS: Mapping[str, Any] = {
    **dict.fromkeys(("pid", "ppid", "rank_pid", "rank", "local_rank", "world_size"), int),
    **dict.fromkeys(("threads", "rss", "affinity", "numa", "voluntary", "involuntary"), int),
    **dict.fromkeys(("read_bytes", "write_bytes", "read_chars"), int),
    **dict.fromkeys(("start", "cpu", "main_cpu", "run_delay"), float),
    **dict.fromkeys(("role", "run", "name", "user", "python", "state", "cgroup", "container"), str),
    **dict.fromkeys(("pod", "namespace", "script", "command"), str),
    "gpus": list[str],
}
_NCCL_RANK: Mapping[str, Any] = {
    **dict.fromkeys(("rank", "pid", "gpu", "async_error"), int),
    **dict.fromkeys(("host", "state"), str),
    **dict.fromkeys(("missing", "considered_dead", "unresponsive"), bool),
    "counts": dict[str, int],
}


def _fields(hints: Mapping[str, Any]) -> dict[str, Check]:
    return {name: _of(hint, name) for name, hint in hints.items()}


HARDWARE = object_of({"gpus": list_of(object_of(_fields({"uuid": str, "gpu": int}), ("uuid",)))})
"""The part of a recording's header that is read again."""

_NESTED: Mapping[tuple[str, str], Check] = {
    ("processes", "processes"): list_of(
        object_of(_fields(_PROCESS), ("pid", "ppid", "role", "run"))
    ),
    ("gpu_processes", "processes"): list_of(
        object_of(_fields({"pid": int, "memory": int, "type": str}), ("pid",))
    ),
    ("gpu_info", "topology"): list_of(
        object_of(_fields({"uuid": str, "class": str, "nvlinks": int}))
    ),
    ("host", "numa"): list_of(
        object_of(_fields({"node": int, "cpus": int, "memory_total": int, "memory_free": int}))
    ),
    ("ring", "dt"): number((1e-3, 1e6), integer=False),  # the step of a grid
    ("sm_share", "shares"): list_of(row_of(_PID, _of(float, "sm"), _good, least=2)),
    ("stack", "frames"): either([list_of(FRAME), _of(int, "pid")]),  # or the id of its leaf
    ("locals", "values"): list_of(row_of(_TEXT, _TEXT, _TEXT, _of(int, ""), least=4)),
    ("nccl", "communicators"): list_of(
        object_of(
            {
                "hash": _TEXT,
                "size": _of(int, "rank"),
                "ranks": list_of(object_of(_fields(_NCCL_RANK), ("rank",))),
            },
            ("ranks",),
        )
    ),
}
"""What the contract's annotations leave open, the fields of what an observation lists above all."""


def _kind(hints: Mapping[str, Any]) -> tuple[str, Check]:
    kind = str(get_args(hints["kind"])[0])
    own = {name: check for (of, name), check in _NESTED.items() if of == kind}
    return kind, object_of(_fields(hints) | own, REQUIRED.get(kind, ()))


_UNKNOWN = object_of({"t": _of(float, "t")})
_KINDS: Mapping[str, Check] = dict(
    _kind(hints)
    for hints in (get_type_hints(one) for one in vars(contract).values() if isinstance(one, type))
    if "kind" in hints
)
