"""When something is due again, and how long to wait after a failure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Every:
    """True once in each ``period_s``, at the caller's own pace (a tenth early is on time)."""

    period_s: float
    last: float | None = None

    def due(self, now: float) -> bool:
        # now < last: the clock was set back, and waiting for it to catch up would be silence.
        if self.last is None or now < self.last or now - self.last >= 0.9 * self.period_s:
            self.last = now
            return True
        return False


@dataclass(slots=True)
class BackOff:
    """Waits that double from ``first_s`` to ``most_s``."""

    first_s: float
    most_s: float
    wait_s: float = 0.0
    since: float | None = None

    def failed(self, now: float) -> None:
        self.wait_s = min(self.most_s, 2 * self.wait_s or self.first_s)
        self.since = now

    def succeeded(self) -> None:
        self.wait_s, self.since = 0.0, None

    def due(self, now: float) -> bool:
        return self.since is None or not self.since <= now < self.since + self.wait_s
