"""A GPU's window in even slices, each in shares of the accounts: what a picture is drawn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuwhy.evidence.traces.gaps import ACCOUNT_OF, PARTS
from gpuwhy.evidence.traces.gpu import Gpu
from gpuwhy.evidence.traces.intervals import Intervals, overlap
from gpuwhy.ledger.accounts import ACCOUNTS

SLICES = 480

DRAWN = tuple(dict.fromkeys(("compute", *ACCOUNTS)))
"""From the bottom up: work first."""


def slices(gpu: Gpu, count: int = SLICES) -> dict[str, NDArray[np.float64]]:
    """account -> its share of each slice, in the order to be drawn; together 1 in each.

    A gap counts as the account of its largest part.
    """
    edges = np.linspace(gpu.window.start, gpu.window.end, count + 1).astype(np.int64)
    starts, ends = edges[:-1], edges[1:]
    length = np.maximum(ends - starts, 1)
    sets = {"compute": [gpu.compute], "comm": [gpu.exposed_comm], "copy": [gpu.exposed_copies]}
    for account, of in _idle(gpu).items():
        sets.setdefault(account, []).append(of)
    made = {
        account: sum((overlap(one, starts, ends) for one in parts), np.zeros(count)) / length
        for account, parts in sets.items()
    }
    return {account: made[account] for account in DRAWN if account in made and made[account].any()}


def _idle(gpu: Gpu) -> dict[str, Intervals]:
    gaps = gpu.gaps
    if not len(gaps.start):
        return {}
    largest = gaps.amounts.argmax(axis=1)
    accounts = np.array([ACCOUNT_OF[part][0] for part in PARTS])[largest]
    return {
        str(account): Intervals(gaps.start[accounts == account], gaps.end[accounts == account])
        for account in np.unique(accounts)
    }
