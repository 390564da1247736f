"""What the signals were over a window, for one run on one GPU: means to put into evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from gpuwhy.ledger.split import Shares
from gpuwhy.signals.row import Function, GpuRow, RunSignals


@dataclass(slots=True)
class Window:
    """The rows of one (GPU, run, rank) in a window, with their accounts."""

    rows: list[GpuRow]
    runs: list[RunSignals]
    shares: list[Shares]
    _reasons: tuple[int, dict[tuple[str, str], float]] | None = None  # seconds, and of these

    @property
    def seconds(self) -> int:
        return len(self.rows)

    def accounts(self) -> dict[str, float]:
        """account -> share of the window; adds up to 1 (empty where no GPU is in sight)."""
        out: dict[str, float] = defaultdict(float)
        for (account, _), share in self.reasons().items():
            out[account] += share
        return dict(out)

    def reasons(self) -> dict[tuple[str, str], float]:
        """(account, reason) -> share of the window."""
        if self._reasons is None or self._reasons[0] != len(self.shares):
            out: dict[tuple[str, str], float] = defaultdict(float)
            for shares in self.shares:
                for key, share in shares.items():
                    out[key] += share / len(self.shares)
            self._reasons = len(self.shares), dict(out)
        return self._reasons[1]

    def gpu(self, name: str) -> float | None:
        """Mean of a GPU signal over the seconds in which it was known."""
        return _mean(getattr(row.gpu, name) for row in self.rows if row.gpu is not None)

    def run(self, name: str) -> float | None:
        """Mean of a run signal over the seconds in which it was known."""
        return _mean(getattr(run, name) for run in self.runs)

    def phase(self, *names: str) -> float | None:
        """Mean share of the host's time in these phases."""
        seen = [run.phases for run in self.runs if run.phases is not None]
        return _mean(sum(p.get(n, 0.0) for n in names) for p in seen)

    def call(self, name: str) -> float:
        return _mean(run.calls.get(name, 0.0) for run in self.runs) or 0.0

    def context(self, name: str) -> float:
        return _mean(run.contexts.get(name, 0.0) for run in self.runs) or 0.0

    def queue(self, name: str) -> float | None:
        return _mean(getattr(run.queue, name) for run in self.runs if run.queue is not None)

    def seen(self, source: str) -> float:
        """Share of the window in which a source served."""
        return sum(source in row.seen for row in self.rows) / len(self.rows)

    def function(self, *phases: str) -> Function | None:
        """The function with the most host time in these phases."""
        return _hottest(
            run.functions[phase] for run in self.runs for phase in phases if phase in run.functions
        )

    def worker_function(self) -> Function | None:
        return _hottest(run.worker_function for run in self.runs if run.worker_function)

    def worker_share(self, name: str) -> float | None:
        """Mean share of the workers' time in a function."""
        seen = [run.worker_function for run in self.runs if run.worker_function]
        return _mean(share if function[0] == name else 0.0 for function, share in seen)

    @property
    def last(self) -> RunSignals:
        return self.runs[-1]

    @property
    def last_row(self) -> GpuRow:
        return self.rows[-1]


def spoken(name: str, file: str, line: int) -> str:
    """What a sentence calls a function; a script's own lines by their place."""
    return f"{file.rpartition('/')[2]}:{line}" if name == "<module>" else name


def _mean(values: Iterable[float | None]) -> float | None:
    known = [float(v) for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _hottest(found: Iterable[tuple[Function, float]]) -> Function | None:
    by_name: dict[tuple[str, str], float] = defaultdict(float)
    lines: dict[tuple[str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for (name, file, line), share in found:
        by_name[(name, file)] += share
        lines[(name, file)][line] += share
    if not by_name:
        return None
    best = max(by_name, key=lambda key: by_name[key])
    line = max(lines[best], key=lambda key: lines[best][key])
    return (*best, line)
