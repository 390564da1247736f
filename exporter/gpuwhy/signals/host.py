"""What the host did for one rank in one second: phases, functions, workers, from stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from gpuwhy.observe.observation import Observation
from gpuwhy.signals.phases import WAIT, Place, classify, is_library
from gpuwhy.signals.row import Function
from gpuwhy.signals.tracks import Samples

HOLD_S = 3.0
"""Where no stack was taken, the nearest ones hold for this long."""
SMOOTH_S = 2
"""Steps shorter than a second: phases are averaged over this many seconds to either side, since
ten samples a second are few."""
LOOP_S = 10.0
"""A function that dispatches steps is known as the training loop's for this long."""
LONG_STRETCH_S = 0.5
"""Where a phase lasts longer than this on average, a second is its own best description."""

DISPATCHES = ("forward", "backward", "optimizer")


@dataclass(frozen=True, slots=True)
class HostPhases:
    """Shares of the second by phase (they add up to 1), and what goes with them."""

    shares: Mapping[str, float]
    contexts: Mapping[str, float]
    functions: Mapping[str, tuple[Function, float]]
    calls: Mapping[str, float]
    loop_lines: float
    opaque: float
    samples: int


@dataclass(slots=True)
class _Tally:
    total: float = 0.0
    samples: int = 0
    phases: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    contexts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    functions: dict[tuple[str, Function], float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, place: Place, weight: float) -> None:
        self.total += weight
        self.samples += 1
        self.phases[place.phase] += weight
        if place.context:
            self.contexts[place.context] += weight
        if place.function:
            self.functions[(place.phase, place.function)] += weight
        if place.call:
            self.calls[place.call] += weight


def host_phases(stacks: Samples, second: int) -> HostPhases | None:
    """Phases of the main thread in [second, second + 1); None where no stack is near enough."""
    span = _span(stacks, second)
    if span is None:
        return None
    tally = _Tally()
    others: dict[str, float] = defaultdict(float)
    helpers = _Tally()
    for stack, weight in span:
        if stack.get("main"):
            tally.add(classify(stack["frames"]), weight)
        elif stack["frames"]:
            place = classify(stack["frames"])
            others[place.phase] += weight
            if place.phase == "data_inline":
                helpers.add(place, weight)
    if tally.total <= 0:
        return None
    _fetched_by_helpers(tally, helpers)
    shares = {phase: weight / tally.total for phase, weight in tally.phases.items()}
    # A collective may be waited for in an autograd thread while the main thread sits in backward.
    moved = min(others["grad_sync"] / tally.total, shares.get("backward", 0.0))
    if moved > 0:
        shares["backward"] -= moved
        shares["grad_sync"] = shares.get("grad_sync", 0.0) + moved
    return HostPhases(
        shares,
        {name: weight / tally.total for name, weight in tally.contexts.items()},
        _hottest(tally),
        {name: weight / tally.total for name, weight in tally.calls.items()},
        _loop_lines(tally, stacks, second),
        _opaque(span) / tally.total,
        tally.samples,
    )


def _fetched_by_helpers(tally: _Tally, helpers: _Tally) -> None:
    """A main thread that waits while a thread of its own process makes the next batch waits for
    its input pipeline (threads as loaders: a queue, a Future)."""
    fetched = min(tally.calls.get(WAIT, 0.0), helpers.total, tally.phases.get("user", 0.0))
    if fetched <= 0:
        return
    tally.calls[WAIT] -= fetched
    tally.phases["user"] -= fetched
    tally.phases["data_wait"] += fetched
    for (_, function), weight in helpers.functions.items():
        tally.functions[("data_wait", function)] += weight


def _loop_lines(tally: _Tally, stacks: Samples, second: int) -> float:
    """Share of the time in plain lines of a function that also dispatches steps: such a line may
    be a C call of any kind, a copy among them."""
    own = {f[:2] for phase, f in tally.functions if phase == "user"}
    loops = {f[:2] for phase, f in tally.functions if phase in DISPATCHES}
    if own - loops:  # a function is the loop's also in a second that its longest line fills
        loops |= _dispatching(stacks.between(second - LOOP_S, second + 1.0 + LOOP_S), own - loops)
    inside = sum(w for (p, f), w in tally.functions.items() if p == "user" and f[:2] in loops)
    return inside / tally.total


def _dispatching(stacks: Sequence[Observation], functions: set[tuple[str, str]]) -> set[Any]:
    """Those of the functions that are seen to dispatch steps."""
    places = (classify(s["frames"]) for s in stacks if s.get("main") and s["frames"])
    return {
        place.function[:2]
        for place in places
        if place.function and place.phase in DISPATCHES and place.function[:2] in functions
    }


def _opaque(span: Weighted) -> float:
    """Seconds in the user's phase at lines from which no Python function of the user was seen to be
    called. Only there can a C call hide that copies: a line that sorts with a ``key`` or sums a
    generator runs Python, and shows it in some of its samples."""
    own = [
        (stack["frames"], weight)
        for stack, weight in span
        if stack.get("main") and stack["frames"] and classify(stack["frames"]).phase == "user"
    ]
    runs_python = {
        (caller[1], caller[2])
        for frames, _ in own
        for callee, caller in pairwise(frames)
        if not is_library(callee[1])
    }
    return sum(
        weight
        for (leaf, *_), weight in own
        if (leaf[1], leaf[2]) not in runs_python and not leaf[0].endswith(_INLINE_CODE)
    )


_INLINE_CODE = ("<genexpr>", "<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>")


def _hottest(tally: _Tally) -> dict[str, tuple[Function, float]]:
    """By phase, the function with the most time; lines of one function count together and the
    line with the most time stands for it."""
    by_function: dict[tuple[str, str, str], float] = {}
    best_line: dict[tuple[str, str, str], tuple[float, int]] = {}
    for (phase, (name, file, line)), weight in tally.functions.items():
        key = (phase, name, file)
        by_function[key] = by_function.get(key, 0.0) + weight
        best_line[key] = max(best_line.get(key, (0.0, line)), (float(weight), line))
    out: dict[str, tuple[Function, float]] = {}
    for (phase, name, file), weight in by_function.items():
        share = weight / tally.total
        if phase not in out or share > out[phase][1]:
            out[phase] = ((name, file, best_line[(phase, name, file)][1]), share)
    return out


Weighted = list[tuple[Observation, float]]


def _span(stacks: Samples, second: int) -> Weighted | None:
    """The stacks that describe the second, each with its seconds of weight."""
    wide = stacks.between(second - SMOOTH_S - 1.0, second + 1.0 + SMOOTH_S)
    inside = _overlaps(wide, second, second + 1.0)
    seen = sum(weight for stack, weight in inside if stack.get("main"))
    if seen >= 0.5 and _mean_stretch(wide) >= LONG_STRETCH_S:
        return inside
    around = _overlaps(wide, second - SMOOTH_S, second + 1.0 + SMOOTH_S)
    if any(stack.get("main") for stack, _ in around):
        return around
    return _nearest(stacks, second)


def _overlaps(stacks: Iterable[Observation], start: float, end: float) -> Weighted:
    out = []
    for stack in stacks:
        t = float(stack["t"])
        weight = min(t + max(float(stack["dt"]), 1e-3), end) - max(t, start)
        if weight > 0:
            out.append((stack, weight))
    return out


def _nearest(stacks: Samples, second: int) -> Weighted | None:
    before = stacks.last(second + 1.0, HOLD_S + 1.0)
    after = stacks.between(second + 1.0, second + 1.0 + HOLD_S)
    centre = second + 0.5
    times = [float(s["t"]) for s in ([before] if before else []) + after]
    if not times:
        return None
    nearest = min(times, key=lambda t: abs(t - centre))
    near = stacks.between(nearest - 0.5, nearest + 0.5 + 1e-6)
    return [(s, float(s["dt"])) for s in near]


def _mean_stretch(stacks: Sequence[Observation]) -> float:
    """Mean length of an unbroken stretch of one phase, in seconds."""
    total, stretches, last = 0.0, 0, None
    for stack in stacks:
        if not stack.get("main"):
            continue
        phase = classify(stack["frames"]).phase
        total += float(stack["dt"])
        stretches += phase != last
        last = phase
    return total / stretches if stretches else 0.0


def stuck_for(stacks: Samples, now: float) -> float | None:
    """Seconds for which every sample of the main thread has shown the same stack, up to now."""
    since: float | None = None
    frames: object = None
    for stack in stacks.newest_first():
        if not stack.get("main") or float(stack["t"]) > now:
            continue
        if frames is None:
            frames = stack["frames"]
        elif stack["frames"] != frames:
            break
        since = float(stack["t"])
    return None if since is None else max(0.0, now - since)
