"""One second as it stands in the book."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwhy.ledger.split import Split
from gpuwhy.signals.row import RunKey, Second

Gpu = str
"""uuid of a GPU or MIG instance."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One second as it was entered: the signals, and the run view of each run on each GPU."""

    second: Second
    shares: dict[tuple[Gpu | None, RunKey, int], Split]
