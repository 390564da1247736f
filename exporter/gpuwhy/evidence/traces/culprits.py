"""The line of Python behind a wait, where the trace was taken with stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from gpuwhy.evidence.traces.gaps import PARTS
from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.states import frames_of, is_user, python_function, user_frame
from gpuwhy.evidence.traces.trace import PYTHON, UNKNOWN, Ids
from gpuwhy.signals.row import Function

LOOKED_AT = 200
"""The longest waits of a kind that are looked up; the rest says the same."""


class Culprits:
    """Looks up what the host ran during the gaps of one GPU."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        spans = gpu.trace.spans
        self._python = np.flatnonzero(
            np.isin(spans.name, _user_names(gpu)) & (spans.kind == PYTHON)
        )
        self._stacked = np.flatnonzero(spans.stack != UNKNOWN)
        self._parsed: dict[int, Function | None] = {}

    @property
    def can_see(self) -> bool:
        """Was the trace taken with stacks?"""
        return bool(len(self._python) or len(self._stacked))

    def function(self, parts: Iterable[str]) -> Function | None:
        """The function with the most waiting time in these parts of gaps."""
        if not self.can_see:
            return None
        gaps = self._gpu.gaps
        amount = gaps.amounts[:, [PARTS.index(part) for part in parts]].sum(axis=1)
        weights: dict[Function, float] = defaultdict(float)
        for row in np.argsort(-amount, kind="stable")[:LOOKED_AT].tolist():
            if amount[row] <= 0:
                break
            function = self.at(row)
            if function is not None:
                weights[function] += float(amount[row])
        return max(weights, key=lambda f: weights[f]) if weights else None

    def at(self, row: int) -> Function | None:
        """The job's function that the launching thread was in, midway through a piece of a gap."""
        gaps = self._gpu.gaps
        call = int(gaps.call[row])
        late = int(self._gpu.calls.start[call]) if call >= 0 else int(gaps.end[row])
        until = min(max(late, int(gaps.start[row]) + 1), int(gaps.end[row]))
        middle = (int(gaps.start[row]) + until) // 2
        if len(self._python):
            return self._running(middle)
        return self._stack_near(middle, until)

    def _running(self, at: int) -> Function | None:
        """The innermost of the job's Python functions that was running on the main thread."""
        spans, rows = self._gpu.trace.spans, self._python
        found = rows[(spans.start[rows] <= at) & (spans.end[rows] > at)]
        mine = found[spans.thread[found] == self._gpu.host.main]
        if not len(mine):
            return None
        return python_function(self._gpu.trace.names[spans.name[mine[-1]]])

    def _stack_near(self, at: int, until: int) -> Function | None:
        """Old versions write stacks on operators only: that of the last one begun by then, or else
        of the next."""
        starts = self._gpu.trace.spans.start[self._stacked]
        place = int(np.searchsorted(starts, at, side="right"))
        for row in (*self._stacked[max(0, place - 3) : place][::-1], *self._stacked[place:][:1]):
            if starts[0] <= until and (function := self._stack(int(row))) is not None:
                return function
        return None

    def _stack(self, row: int) -> Function | None:
        stack = int(self._gpu.trace.spans.stack[row])
        if stack not in self._parsed:
            self._parsed[stack] = user_frame(frames_of(self._gpu.trace.stacks[stack]))
        return self._parsed[stack]


def _user_names(gpu: Gpu) -> Ids:
    spans = gpu.trace.spans
    kept = []
    for name in np.unique(spans.name[spans.kind == PYTHON]).tolist():
        function = python_function(gpu.trace.names[name])
        if function is not None and is_user(function):
            kept.append(name)
    return np.array(kept, np.int64)
