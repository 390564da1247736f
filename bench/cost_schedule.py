"""In which order watchers take their turns: blocks of random order, pure but for the dice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

GUARD_ON_S = 1.0
"""After a watcher goes on: what it makes up for at once belongs to no window."""
GUARD_OFF_S = 0.2
"""After it goes off: the step that it was met in."""
SWITCH_S = 0.4
"""What switching takes, at most as a rule."""
MOST_PAUSE_S = 25.0
"""An exporter that was stopped for 30 s takes its observer for silent and replaces it."""


@dataclass(frozen=True)
class Plan:
    """How one job is measured: the length of its windows, its part of the time, peers or not."""

    window_s: float
    share: float
    peers: bool


PLANS = {
    "c01": Plan(2.0, 1.1, peers=True),
    "c05": Plan(2.0, 1.1, peers=False),
    "c35": Plan(2.0, 1.1, peers=True),
    "c03": Plan(4.0, 1.5, peers=False),
}
"""Window lengths after the noise of these jobs on an H200. A GPU-bound job is as good in any; a
launch-bound one drifts, which short windows follow; with a loader of four workers batches come in
bursts of four, whose jitter at both ends of a window only its length makes small."""
OTHERWISE = Plan(3.0, 1.0, peers=True)


def took_s(window_s: float, *, peer: bool = False) -> float:
    """Seconds of a watched window and the empty one after it, switching included."""
    return 2 * window_s + GUARD_ON_S + GUARD_OFF_S + SWITCH_S * (2 if peer else 1)


def turns(
    window_s: float, peers: Sequence[str], dice: Random, paused_s: Callable[[], float]
) -> Iterator[str]:
    """Names without end: ``on`` and ``control`` in a random order in each block, and a peer at the
    end of the first ones. ``paused_s`` tells how long the exporter has been off: it goes first
    where it would else be off for too long."""
    waiting = dice.sample(list(peers), len(peers))
    while True:
        block = dice.sample(["on", "control"], 2)
        if block[0] == "control" and paused_s() + took_s(window_s) > MOST_PAUSE_S:
            block.reverse()
        yield from block
        if waiting and paused_s() + took_s(window_s, peer=True) <= MOST_PAUSE_S:
            yield waiting.pop()
