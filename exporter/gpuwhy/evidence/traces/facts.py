"""What is worth knowing of one GPU of a trace, found once: for evidence, advice and tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gpuwhy.evidence.traces import collectives, copies, kernels, lateness, launch
from gpuwhy.evidence.traces.culprits import Culprits
from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.kernels import by_operator
from gpuwhy.evidence.traces.tables import Row
from gpuwhy.signals.row import Function

PARTS_OF = {
    "data": ("data",),
    "host": ("synchronize", "python", "logging", "garbage-collection"),
    "launch": ("dispatch",),
    "copy": ("copy",),
    "comm": ("comm",),
}
"""The parts of gaps in which the function of a cause is looked for."""


@dataclass
class Facts:
    """``peers``: other ranks in the files given; ``met``: how the ranks met in collectives, with
    this one at ``place``."""

    gpu: Gpu
    peers: int = 0
    met: lateness.Lateness | None = None
    place: int = 0

    @cached_property
    def launches(self) -> launch.Launches:
        return launch.launches(self.gpu)

    @cached_property
    def regions(self) -> dict[str, float]:
        return launch.regions(self.gpu)

    @cached_property
    def tiny_ratio(self) -> float | None:
        return kernels.tiny_ratio(self.gpu)

    @cached_property
    def copies(self) -> list[Row]:
        return copies.table({}, self.gpu)

    @cached_property
    def collectives(self) -> list[Row]:
        return collectives.table({}, self.gpu)

    @cached_property
    def operators(self) -> list[Row]:
        return by_operator({}, self.gpu)

    @cached_property
    def culprits(self) -> Culprits:
        return Culprits(self.gpu)

    @property
    def straggler(self) -> bool:
        """Do the other ranks wait for this one?"""
        return self.met is not None and self.met.straggler == self.place

    @property
    def late_s(self) -> float | None:
        """How much later than the first this rank came to collectives, on average."""
        return None if self.met is None else self.met.late[self.place] / 1e9

    @property
    def waited_ratio(self) -> float | None:
        """Share of the window that this rank waited in collectives for later ones."""
        return None if self.met is None else self.met.waited[self.place] / self.gpu.window.length

    def reason(self, account: str) -> str | None:
        """The reason with most of the account's time."""
        if self.straggler and account in ("host", "data"):
            return "straggler"
        found = {r: v for (a, r), v in self.gpu.shares.items() if a == account}
        if account == "data" and self.inline:
            return "inline"
        return max(found, key=lambda r: found[r]) or None if found else None

    @cached_property
    def inline(self) -> bool:
        """The main thread makes its batches itself: torch names the iterator it uses."""
        return any("_SingleProcessDataLoaderIter" in name for name in self.gpu.trace.names)

    def function(self, account: str) -> Function | None:
        """The job's function behind a cause, where the trace was taken with stacks."""
        return self.culprits.function(PARTS_OF[account]) if account in PARTS_OF else None

    @cached_property
    def optimizer_name(self) -> str | None:
        """``AdamW`` of ``Optimizer.step#AdamW.step``."""
        for name in self.gpu.trace.names:
            if name.startswith("Optimizer.step#"):
                return name.partition("#")[2].partition(".")[0]
        return None

    @cached_property
    def same_kernels_each_step(self) -> bool | None:
        """Does each step launch the same number of kernels? Then CUDA Graphs can replay it."""
        from gpuwhy.evidence.traces.step_table import table

        counts = [row["launched"] for row in table({}, self.gpu)]
        return None if len(counts) < 2 else max(counts) - min(counts) <= 0.02 * max(counts)
