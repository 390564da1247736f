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


def read_steps(locals_: Samples, second: int) -> Steps:
    """What the locals seen up to the end of the second say."""
    seen = [o for o in locals_ if float(o["t"]) < second + 1.0]
    if not seen or float(seen[-1]["t"]) < second - STALE_S:
        return Steps()
    newest = seen[-1]
    key = _step_key(seen)
    values = _values(newest)
    step = values.get(key) if key else None
    return Steps(
        step=step,
        t=float(newest["t"]) if step is not None else None,
        name=key[2] if key and step is not None else None,
        epoch=_named(values, EPOCH_NAMES),
        total=_named(values, TOTAL_NAMES),
        per_second=_rate(seen, key) if key else None,
        still_s=_still(seen, key) if key else None,
    )


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
    seen twice it must have grown, or at least not fallen outside a new epoch."""
    newest = _values(seen[-1])
    candidates = [key for key in newest if key[2] in STEP_NAMES]
    moving = [key for key in candidates if _moves(seen, key)]
    pool = moving or (candidates if len(seen) < 2 else [])
    return min(pool, key=lambda key: STEP_NAMES.index(key[2])) if pool else None


def _series(seen: list[Observation], key: Key) -> list[tuple[float, int]]:
    points = []
    for observation in seen:
        value = _values(observation).get(key)
        if value is not None:
            points.append((float(observation["t"]), value))
    return points


def _moves(seen: list[Observation], key: Key) -> bool:
    points = _series(seen, key)
    return any(b[1] > a[1] for a, b in pairwise(points))


def _still(seen: list[Observation], key: Key) -> float:
    """From the newest observation back to the oldest one that shows the same value."""
    points = _series(seen, key)
    last_t, last = points[-1]
    since = last_t
    for t, value in reversed(points):
        if value != last:
            break
        since = t
    return last_t - since


def _rate(seen: list[Observation], key: Key) -> float | None:
    """Steps a second since the counter last fell (a new epoch), from its end points."""
    points = _series(seen, key)
    start = 0
    for i in range(1, len(points)):
        if points[i][1] < points[i - 1][1]:
            start = i
    first, last = points[start], points[-1]
    span = last[0] - first[0]
    return (last[1] - first[1]) / span if span > 0.5 else None
