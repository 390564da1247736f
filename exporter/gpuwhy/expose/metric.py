"""What a metric is: its name, type, labels, bound on series and help, declared once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "info"]
Scope = Literal["GPU", "GPU and run", "run", "process", "source", "port", "family", "host"]

GPU = ("uuid", "gpu", "mig")
"""``uuid`` is the key. ``gpu`` is NVML's index and differs between containers. ``mig`` is empty
without MIG. A MIG instance has its own ``uuid``."""

RUN = (*GPU, "run", "rank")
"""One rank of a run on one GPU; the GPU labels are empty where a job's GPU is not in sight, and
``rank`` is empty where the job has no global rank."""

UNITS = (
    "bytes_per_second",
    "seconds",
    "bytes",
    "watts",
    "joules",
    "hertz",
    "celsius",
    "ratio",
    "cores",
)
"""The units in use. Each stands at the end of the name (before ``_total``)."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of the exposition. ``bound`` is the most series it may have per ``scope``."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    bound: int
    scope: Scope
    help: str

    @property
    def unit(self) -> str:
        """The base unit, or "" for counts, flags and times without one."""
        stem = self.name.removesuffix("_total")
        return next((unit for unit in UNITS if stem.endswith("_" + unit)), "")


Sample = tuple[Metric, tuple[str, ...], float | None]
"""A metric, the values of its labels in their order, and its value. ``None`` is "not known": no
sample is exposed for it."""

Samples = Iterator[Sample]


def on_gpu(name: str, text: str) -> Metric:
    """A gauge with one series per GPU or MIG instance."""
    return Metric(name, "gauge", GPU, 1, "GPU", text)


def on_run(name: str, text: str) -> Metric:
    """A gauge with one series per (GPU, run, rank)."""
    return Metric(name, "gauge", RUN, 1, "GPU and run", text)


def on_host(name: str, text: str) -> Metric:
    """A gauge with one series per exporter."""
    return Metric(name, "gauge", (), 1, "host", text)
