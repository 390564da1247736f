"""Facts that are exposed as they were observed, without interpretation: the last of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuwhy.observe.observation import Observation

_KEYS: Mapping[str, tuple[str, ...]] = {
    "gpu_info": ("uuid",),
    "gpu_limits": ("uuid",),
    "gpu_reasons": ("uuid",),
    "gpu_health": ("uuid",),
    "gpu_processes": ("uuid",),
    "gpu": ("uuid",),
    "xid": ("uuid", "xid"),
    "network_port": ("device", "port"),
    "processes": (),
    "cgroup": ("path",),
    "host": (),
    "source": ("source", "uuid", "pid"),
}
"""The kinds that are kept, and the fields that tell one from another."""

KEEP_S: Mapping[str, float] = {
    "gpu_info": 180.0,
    "gpu_limits": 60.0,
    "gpu_health": 60.0,
    "gpu_reasons": 30.0,
    "network_port": 60.0,
    "source": 30.0,
    "xid": 7 * 86400.0,
}
"""How long a fact holds where that is not ten seconds: a few times its period."""
DEFAULT_KEEP_S = 10.0
AHEAD_S = 30.0
"""A fact from further ahead is of a clock that was set back since."""
MOST = 1024
"""Facts kept of one kind; the oldest go first. Bounds the memory."""


class Facts:
    """The last observation of each kind and key."""

    def __init__(self) -> None:
        self._last: dict[str, dict[str, Observation]] = {kind: {} for kind in _KEYS}

    def add(self, observations: Iterable[Observation]) -> None:
        """Keep those that are facts; each replaces the one before it as a whole."""
        for observation in observations:
            kind = observation.get("kind")
            fields = _KEYS.get(kind) if isinstance(kind, str) else None
            if fields is not None:
                self._put(str(kind), "/".join(str(observation.get(f)) for f in fields), observation)

    def _put(self, kind: str, key: str, observation: Observation) -> None:
        of_kind = self._last[kind]
        of_kind.pop(key, None)
        of_kind[key] = observation
        if len(of_kind) > MOST:
            del of_kind[next(iter(of_kind))]

    def copy(self) -> dict[str, dict[str, Observation]]:
        """What is held now, by kind and key."""
        return {kind: dict(of_kind) for kind, of_kind in self._last.items()}


def fresh(
    facts: Mapping[str, Mapping[str, Observation]], now: float
) -> dict[str, dict[str, Observation]]:
    """Those that still hold at ``now``."""
    return {
        kind: {
            key: observation
            for key, observation in of_kind.items()
            if -AHEAD_S <= now - float(observation["t"]) <= KEEP_S.get(kind, DEFAULT_KEEP_S)
        }
        for kind, of_kind in facts.items()
    }
