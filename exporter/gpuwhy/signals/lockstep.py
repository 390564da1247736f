"""Ranks in step: who waits in a collective, and for whom.

NCCL leaves no Python frame and a waiting rank looks busy: its kernel spins. What tells it is that
ranks of a run in lockstep do the same work each step, so a rank that is resident longer for the
same work is waiting for the rest of that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WORK_FIELDS = ("tensor", "dram", "sm")
"""Activity that waiting does not have, the cleanest first: a spinning kernel keeps SMs active
(18 % on an H200) but moves no data and issues no tensor work."""
WORK_FLOOR = 0.01
DENSITY_GAP = 0.8
"""Work for each busy second below this share of the peer's: the rest is waiting."""
BUSY_GAP = 0.10
SAME_POWER = 1.15
SPIN_SM = 0.18  # SM active of a pure NCCL spin (H200, 2 ranks)
WORK_SM = 0.85  # SM active of ordinary training kernels
SPIN_DENSITY = 0.5
LINK_TRAFFIC = 3e9
"""Bytes/s both ways over PCIe that no input pipeline causes: the ranks exchange data over it (two
H200 without peer-to-peer moved 20 GB/s each way and lost 29 %)."""


@dataclass(frozen=True, slots=True)
class RankActivity:
    """Means of one rank's GPU over the same stretch of time."""

    key: object
    busy: float | None
    sm: float | None = None
    tensor: float | None = None
    dram: float | None = None
    power_w: float | None = None
    pcie: float | None = None  # bytes/s, the lesser of both directions
    alone: bool = True  # no other run on the GPU: its activity is this rank's


@dataclass(frozen=True, slots=True)
class Waiting:
    """Share of time resident in a collective, waiting; how it was told; who is waited for. Told by
    ``lockstep``, a share of 0 says only that it waits no longer than its peers."""

    share: float
    how: str
    straggler: object | None


def waiting(ranks: Sequence[RankActivity]) -> dict[object, Waiting]:
    """For each rank of one run on this host that can be judged, how much of its busy time is
    waiting. A rank that is missing in the answer could not be judged."""
    known = [r for r in ranks if r.busy is not None and r.alone]
    if len(known) < 2:
        return {}
    field = _work_field(known)
    reference = (
        max(known, key=lambda r: _density(r, field))
        if field
        else min(known, key=lambda r: r.busy or 0.0)
    )
    out: dict[object, Waiting] = {}
    for rank in known:
        share = _by_work(rank, reference, field) if field else _by_power(rank, reference)
        if share == 0 and field:
            over_link = exchange(rank)
            if over_link is not None:
                out[rank.key] = over_link
                continue
        if share is not None:
            how = "peers" if field and (share > 0 or not may_exchange(rank)) else "lockstep"
            out[rank.key] = Waiting(share, how, reference.key if share > 0 else None)
    return out


def _density(rank: RankActivity, field: str) -> float:
    """Work for each second that the GPU was busy."""
    return float(getattr(rank, field)) / rank.busy if rank.busy else 0.0


def exchange(rank: RankActivity) -> Waiting | None:
    """All ranks alike, but data crosses PCIe both ways: the mixture of collective and work."""
    if rank.pcie is None or rank.pcie < LINK_TRAFFIC or rank.sm is None or not rank.busy:
        return None
    return Waiting(_mixture(rank.busy, rank.sm), "link", None)


def may_exchange(rank: RankActivity) -> bool:
    """May all ranks alike wait for the link, for all that is known? Only its traffic or the SMs'
    activity rules that out: being no worse than a peer does not."""
    if rank.pcie is not None and rank.pcie < LINK_TRAFFIC:
        return False
    return rank.sm is None or _mixture(rank.busy or 0.0, rank.sm) >= BUSY_GAP


def _mixture(busy: float, sm: float) -> float:
    """The share of collectives in busy time that gives this SM activity."""
    return min(busy, max(0.0, (WORK_SM * busy - sm) / (WORK_SM - SPIN_SM)))


def signature(rank: RankActivity) -> Waiting | None:
    """Without a peer in sight: the mixture of spin and work that gives this SM activity, where the
    counters say that little work is done or the link that ranks exchange data."""
    if rank.busy is None or rank.sm is None or rank.busy < 0.5 or not rank.alone:
        return None
    if rank.sm / rank.busy >= SPIN_DENSITY or max(rank.tensor or 0.0, rank.dram or 0.0) > 0.15:
        how = "lockstep" if may_exchange(rank) else "signature"
        return exchange(rank) or Waiting(0.0, how, None)
    return Waiting(_mixture(rank.busy, rank.sm), "signature", None)


def _work_field(ranks: Sequence[RankActivity]) -> str | None:
    for name in WORK_FIELDS:
        values = [getattr(r, name) for r in ranks]
        if all(v is not None and v >= WORK_FLOOR for v in values):
            return name
    return None


def _by_work(rank: RankActivity, reference: RankActivity, field: str) -> float:
    """A rank that works less for each busy second than the densest one spins for the rest. Its
    SMs must say so too: a stage with other kernels may be less dense and still work."""
    density, densest = _density(rank, field), _density(reference, field)
    if rank is reference or density >= DENSITY_GAP * densest:
        return 0.0
    seen = rank.sm is not None and reference.sm is not None
    if seen and _density(rank, "sm") >= DENSITY_GAP * _density(reference, "sm"):
        return 0.0
    return max(0.0, (rank.busy or 0.0) - float(getattr(rank, field)) / densest)


def _by_power(rank: RankActivity, reference: RankActivity) -> float | None:
    """Without activity counters: a rank that is busy much longer at the same power did the same
    work. Much more power is more work, which cannot be judged this way."""
    busy, least = rank.busy or 0.0, reference.busy or 0.0
    if rank is reference or busy - least < BUSY_GAP:
        return 0.0
    if rank.power_w is None or reference.power_w is None:
        return None
    return busy - least if rank.power_w <= SAME_POWER * reference.power_w + 15.0 else None
