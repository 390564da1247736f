"""Step, epoch and totals of an unmodified loop, from the integer locals of its frames."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from gpuwhy.observe.observation import Observation
from gpuwhy.signals.tracks import Samples

STEP_NAMES = (
    "global_step",
    "step",
    "update_step",
    "it",
    "iteration",
    "iter_num",
    "n_iter",
    "iter",
    "batch_idx",
    "batch_index",
    "step_idx",
    "idx",
    "i",
)
"""What loops call their counter, the surest first."""
VAGUE_NAMES = ("it", "iter", "idx", "i")
"""Those that any loop may use: one that prepares the data, say."""
EPOCH_NAMES = ("epoch", "epoch_idx", "current_epoch", "ep")
TOTAL_NAMES = (
    "max_steps",
    "total_steps",
    "num_steps",
    "num_training_steps",
    "max_iters",
    "n_steps",
)
STALE_S = 30.0
RATE_S = 30.0
"""The rate is that of the last half minute, not of the job's life."""
TORN_S = 5.0
"""A read is known as torn by neighbours that lie this near; between reads that are further apart a
job may well have begun anew."""
_LOADER = "torch/utils/data/"

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Steps:
    """``step`` is the one in progress at ``t``; the rate is over the observations in memory."""

    step: int | None = None
    t: float | None = None
    name: str | None = None
    epoch: int | None = None
    total: int | None = None
    per_second: float | None = None
    still_s: float | None = None  # how long the counter has been seen not to move

    @property
    def surely_moves(self) -> bool:
        """A counter that only a training loop has is seen to go up."""
        return self.name not in VAGUE_NAMES and (self.per_second or 0.0) > 0


def read_steps(locals_: Samples, second: int) -> Steps:
    """What the locals seen up to the end of the second say."""
    seen = [o for o in locals_ if float(o["t"]) < second + 1.0]
    if not seen or float(seen[-1]["t"]) < second - STALE_S:
        return Steps()
    key = _step_key(seen)
    points = _steady(_series(seen, key)) if key else []
    if points and points[-1][0] < second - STALE_S:
        points = []
    values = _values(seen[-1])
    return Steps(
        step=points[-1][1] if points else None,
        t=points[-1][0] if points else None,
        name=key[2] if key and points else None,
        epoch=_named(values, EPOCH_NAMES),
        total=_named(values, TOTAL_NAMES),
        per_second=rate(points),
        still_s=_still(points) if points else None,
    )


Points = list[tuple[float, int]]
"""(time, value) of one counter."""


def _values(observation: Observation) -> dict[Key, int]:
    """By (function, file, name); of a recursion the frame nearest to the leaf. The loader's own
    locals count batches of a worker, not steps."""
    out: dict[Key, int] = {}
    for function, file, name, value in observation["values"]:
        if _LOADER not in file:
            out.setdefault((function, file, name), int(value))
    return out


def _named(values: dict[Key, int], names: tuple[str, ...]) -> int | None:
    for wanted in names:
        for (_, _, name), value in values.items():
            if name == wanted:
                return value
    return None


def _step_key(seen: list[Observation]) -> Key | None:
    """The counter of the outermost loop that counts steps: known by name; where the same name was
    seen twice it must have grown, or at least not fallen outside a new epoch. A framework's loop
    has its counter only while it is in its step, so the newest look that shows one decides."""
    if len(seen) < 2:
        return _surest(_candidates(seen[-1])) if seen else None
    since = float(seen[-1]["t"]) - STALE_S
    for look in reversed(seen):
        if float(look["t"]) < since:
            break
        moving = [key for key in _candidates(look) if _moves(seen, key)]
        if moving:
            return _surest(moving)
    return None


def _candidates(look: Observation) -> list[Key]:
    return [key for key in _values(look) if key[2] in STEP_NAMES]


def _surest(keys: list[Key]) -> Key | None:
    return min(keys, key=lambda key: STEP_NAMES.index(key[2])) if keys else None


def _series(seen: list[Observation], key: Key) -> Points:
    found = ((float(o["t"]), _values(o).get(key)) for o in seen)
    return [(t, value) for t, value in found if value is not None]


def _steady(points: Points) -> Points:
    """Without torn reads: the job goes on while it is read, and a value now and then is not what
    the loop counts. One that lies outside its neighbours, while they are in order, is left out; so
    is a newest one that has fallen, until the next confirms a new epoch. Reads that lie far apart
    are all believed."""
    kept = list(points[:1])
    for i in range(1, len(points) - 1):
        before, value, after = kept[-1][1], points[i][1], points[i + 1][1]
        near = points[i + 1][0] - kept[-1][0] <= TORN_S
        if not (near and before <= after and not before <= value <= after):
            kept.append(points[i])
    if len(points) > 1 and (
        points[-1][1] >= kept[-1][1] or points[-1][0] - kept[-1][0] > TORN_S or len(points) == 2
    ):
        kept.append(points[-1])
    return kept


def _moves(seen: list[Observation], key: Key) -> bool:
    points = _series(seen, key)
    return any(b[1] > a[1] for a, b in pairwise(points))


def _still(points: Points) -> float:
    """From the newest observation back to the oldest one that shows the same value."""
    last_t, last = points[-1]
    since = last_t
    for t, value in reversed(points):
        if value != last:
            break
        since = t
    return last_t - since


def rate(points: Points) -> float | None:
    """Steps a second over the last RATE_S, or since the counter fell (a new epoch), from the end
    points."""
    recent = [p for p in points if p[0] > points[-1][0] - RATE_S]
    start = 0
    for i in range(1, len(recent)):
        if recent[i][1] < recent[i - 1][1]:
            start = i
    recent = recent[start:]
    if not recent:
        return None
    (t0, first), (t1, last) = recent[0], recent[-1]
    return (last - first) / (t1 - t0) if t1 - t0 > 0.5 else None
