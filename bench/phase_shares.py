"""How exact phase shares can be at a rate of sampling: `python -m bench.phase_shares`.

A loop waits for 60 % of each step; its stacks are sampled at random moments as py-spy does, a part
of the samples fails while the loop works, and the spans that gpuwhy makes of them are held against
the truth. The sampler alone: no host that is short of CPU, no job that is late.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from gpuwhy.observe.observation import Frame
from gpuwhy.observe.pyspy_formats import FailedRead, Trace, TracedThread
from gpuwhy.observe.stacks_budget import CLOSE, STEADY
from gpuwhy.observe.stacks_spans import Known, Span, spans

WAITS = 0.6  # of each step
FAIL = 0.1  # of the samples in the other part
CHUNK_S = 2.0
POINTS = 0.05
START = 1_700_000_000.0
KEY = 3


def _stack(name: str) -> list[Frame]:
    return [[name, "/job/train.py", 1], ["<module>", "/job/train.py", 9]]


WAIT: list[Frame] = [["wait", "/usr/lib/python3.12/threading.py", 5], *_stack("next")]


def observed(hz: int, step_s: float, seconds: float, rng: random.Random) -> Iterator[Span]:
    """What is observed of the loop from START on."""
    known, now = Known(), START
    while now < START + seconds:
        at, changes, failed = 0.0, [], []
        while (at := at + rng.expovariate(hz)) < CHUNK_S:
            waits = (now + at - START) % step_s < WAITS * step_s
            if not waits and rng.random() < FAIL:
                failed.append(FailedRead(now + at, KEY))
            else:
                changes.append((at, WAIT if waits else _stack(f"work{rng.randrange(9)}")))
        threads = [TracedThread(7, "MainThread", changes, KEY)] if changes else []
        yield from spans(Trace(at, threads), now, hz, known, failed)[0]
        now += at


def within(hz: int, step_s: float, window_s: float, windows: int = 300) -> float:
    """The part of windows whose share of waiting is within 5 points of the truth."""
    seen = [0.0] * (windows + 2)
    for span in observed(hz, step_s, window_s * windows, random.Random(1)):
        if span.frames == WAIT:
            seen[int((span.t + span.dt / 2 - START) // window_s)] += span.dt
    good = [abs(waited / window_s - WAITS) <= POINTS for waited in seen[1 : windows - 1]]
    return sum(good) / len(good)


def main() -> None:
    """Print the table of docs/serve.md."""
    print("| samples a second | window | steps of 50 ms | 200 ms | 1 s |")
    print("| --- | --- | --- | --- | --- |")
    for hz, window_s in (
        (CLOSE.rest_hz, 10), (STEADY.fine_hz, 10), (STEADY.rest_hz, 10), (STEADY.rest_hz, 60),
    ):  # fmt: skip
        cells = (f"{within(hz, step_s, window_s):.0%}" for step_s in (0.05, 0.2, 1.0))
        print(f"| {hz} | {window_s} s | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
