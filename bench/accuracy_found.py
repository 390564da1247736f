"""What the accuracy bench found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from bench.accuracy_degraded import Sight
from bench.accuracy_jobs import Job
from bench.accuracy_signals import Signals


@dataclass
class Found:
    """Everything that the page tells of."""

    scored: list[Job] = field(default_factory=list)
    left_out: list[tuple[Job, float]] = field(default_factory=list)
    signals: dict[str, Signals] = field(default_factory=dict)
    blind: list[tuple[Sight, Counter[str]]] = field(default_factory=list)
    blind_pairs: list[tuple[Sight, Counter[str]]] = field(default_factory=list)
    changed: list[tuple[str, Counter[str]]] = field(default_factory=list)
