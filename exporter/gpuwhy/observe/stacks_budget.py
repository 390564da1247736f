"""How often to look, so that looking stays within its share of one core.

What a capture costs is learned from the captures themselves (`wait4` tells the CPU time of each):
about 10 ms to start and 0.1 to 0.5 ms for each sample of a process. The plan lowers rates first;
whatever it gets wrong the bucket makes up for: no capture starts while it is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

LEAST_HZ = 5
"""Ranks are not sampled more slowly than this; where even that costs too much, gaps grow."""
WORKERS_LEAST = 0.25
"""Part of the share that is kept for workers, where there are any."""
_PRESSED_LEAST = 0.25
"""Part of the share that is left on a host whose CPUs are all wanted."""
_HEAVY_S = 0.1  # a usual capture takes 10 to 50 ms
_HEAVY_PARTS_S = 10.0
_BURST_S = 5.0
_LEAST_BURST = 0.1  # CPU seconds: enough to attach to a few processes at once
_LONGEST_GAP_S = 1.0  # between two looks at the clock; longer ones mean that we did not run
_LEARN = 0.2  # weight of the newest figure


@dataclass(frozen=True, slots=True)
class Pace:
    """Rates that are wanted, and the share of one core that they may cost."""

    rest_hz: int = 10
    fine_hz: int = 20
    # A stack is known once its chunk ends, and a second is entered 3 s after its own end: chunks
    # are as long as that allows, since starting one costs as much as 20 samples.
    chunk_s: float = 2.5
    locals_s: float = 10.0
    fine_locals_s: float = 2.0
    fine_for_s: float = 10.0  # finer sampling lasts this long after a change
    worker_s: float = 1.0
    share_per_rank: float = 0.0075
    least_share: float = 0.03

    def share(self, ranks: int, pressure: float | None = None) -> float:
        """Cores to spend; ``pressure`` (0 to 1) is how short of CPU the host is, None unknown."""
        whole = max(self.least_share, ranks * self.share_per_rank)
        return whole * max(_PRESSED_LEAST, 1.0 - min(1.0, pressure or 0.0))


STEADY = Pace()
"""For an exporter that runs for months."""
CLOSE = Pace(
    rest_hz=100, fine_hz=100, locals_s=2.0, worker_s=0.5, share_per_rank=0.08, least_share=0.15
)
"""For a diagnosis of seconds: phase shares of 10 s need some 800 samples to be within 5 points in
95 % of cases, where the job's steps are as short as the time between two samples."""


@dataclass(slots=True)
class Costs:
    """CPU seconds, learned as running means; ``own`` is what scheduling and reading take, in
    cores."""

    dump_s: float = 0.012
    sample_s: float = 0.0004
    own: float = 0.004

    def record(self, samples: float) -> float:
        """A record starts like a dump: py-spy reads the interpreter's symbols."""
        return self.dump_s + samples * self.sample_s

    def learn_dump(self, cpu_s: float) -> None:
        self.dump_s += _LEARN * (cpu_s - self.dump_s)

    def learn_record(self, cpu_s: float, samples: float) -> None:
        if samples >= 1:
            per_sample = max(0.0, cpu_s - self.dump_s) / samples
            self.sample_s += _LEARN * (per_sample - self.sample_s)

    def learn_own(self, cpu_s: float, elapsed_s: float) -> None:
        if elapsed_s > 0:
            self.own += _LEARN * min(1.0, elapsed_s) * (cpu_s / elapsed_s - self.own)


def allowance(part: float) -> float:
    """CPU seconds of one capture of a rank that all ranks pay for together.

    ``part`` is the rank's part of the share, in cores. Where one takes more, as that of a thousand
    threads does, what is beyond its estimate keeps its own rank waiting: the others go on.
    """
    return max(_HEAVY_S, _HEAVY_PARTS_S * part)


@dataclass(frozen=True, slots=True)
class Plan:
    """``hz``: the most that each rank may be sampled at. ``workers``: cores for workers."""

    hz: int
    workers: float


def make_plan(
    pace: Pace, costs: Costs, share: float, *, rest: int, fine: int, workers: int
) -> Plan:
    """Divide the share: first a part for workers, then ranks (``rest`` of them at rest, ``fine``
    looked at more finely) as fast as wanted, and what is left to workers again."""
    ranks = rest + fine
    room = share - costs.own
    kept = room * WORKERS_LEAST if workers else 0.0
    dumps = ranks / pace.chunk_s + rest / pace.locals_s + fine / pace.fine_locals_s
    fixed = costs.dump_s * dumps
    affordable = (room - kept - fixed) / max(ranks * costs.sample_s, 1e-9)
    hz = int(min(max(affordable, LEAST_HZ), pace.fine_hz))
    sampled = costs.sample_s * (rest * min(hz, pace.rest_hz) + fine * hz)
    return Plan(hz, max(kept, room - fixed - sampled) if workers else 0.0)


class Bucket:
    """CPU seconds in hand: fills at a share of one core, may run into debt, bounds a burst."""

    def __init__(self) -> None:
        self.level = _LEAST_BURST
        self._last: float | None = None

    def fill(self, now: float, share: float) -> None:
        """``now`` is monotonic seconds. Time in which we were stopped is not saved up: it would be
        spent in a burst, on a host that has just come back."""
        if self._last is not None:
            self.level += share * min(now - self._last, _LONGEST_GAP_S)
        self._last = now
        self.level = min(self.level, max(_LEAST_BURST, share * _BURST_S))

    def spend(self, cpu_s: float) -> None:
        self.level -= cpu_s

    @property
    def empty(self) -> bool:
        return self.level <= 0
