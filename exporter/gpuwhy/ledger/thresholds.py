"""Every threshold of the ledger and the verdict, in one place, each with its reason."""

from __future__ import annotations

# -- the verdict ---------------------------------------------------------------------------------

CAUSE_RATIO = 0.115
"""A cause is named from this share of the window. It must be named from 15 % and never below 8 %;
between, either answer is right, so the threshold stands in the middle."""

UNKNOWN_RATIO = 0.115
"""``unknown`` is the answer where it is the largest loss and would be a cause by its size."""

SUM_RATIO = 0.15
"""A cause too small to be named and ``unknown``, which may be more of it, together: a loss that
must be named. Then ``none`` is not proven, and the answer is ``unknown``."""

# -- busy time -----------------------------------------------------------------------------------

THROTTLE_FLOOR = 0.01
"""Clocks move in steps of 15 MHz (0.8 % of 1980): less is no loss."""

WORKS_THROUGHOUT = 0.9
"""Busy share from which a card of unknown limits may run at a lower clock all the time; one that
rests in between is let up to its full clock."""

SWITCHING_COST = 0.06
SWITCHING_SHARE = 0.10
"""Two processes that both work take turns, and the turns cost: on an H200 two equal jobs together
did 92 % of what one does alone. Lost to sharing, from this share of each on."""

NO_WORK_DRAM = 0.02
NO_WORK_TENSOR = 0.005
NO_WORK_SM = 0.35
"""A GPU that is resident but moves no data and issues no tensor work is spinning (an NCCL kernel
reads SM 18 %, DRAM and tensor 0)."""

SPIN_POWER = 0.35
"""Without activity counters: power below this share of the limit at full utilisation is no work
(a spinning H200 draws 123 of 700 W, a healthy step 690)."""

ALL_SPIN = 0.95
"""Share of a second in a collective from which nothing else can have happened in it."""

WORK_POWER = 0.9
"""Without activity counters a rank of several works all of its busy time only if it draws this
share of the limit (healthy: 0.98; two ranks that lose 29 % to a slow link: 0.7 to 0.8)."""

# -- idle time -----------------------------------------------------------------------------------

QUOTA_THROTTLED = 0.25
"""Share of CFS periods throttled from which the job's CPU quota explains its idle GPU."""

STARVED_DELAY = 0.25
"""Share of time that the main thread, or a worker on average, was runnable but had no CPU: from
here on that is what holds it up (H200: 0.00 in jobs without a limit, 0.43 and more under one)."""

NOTICED_DELAY = 0.05
"""Below it a wait for a CPU is ordinary scheduling; from it to STARVED_DELAY the main thread's wait
explains as much idle time as it lasted."""

FREE_CORES = 0.1
"""A host with this share of its cores free could have run the thread: a limit forbade it."""

PINNED_USE = (0.85, 1.15)
"""Workers together use this much of the few cores that each of them may run on: they share them."""

COPY_PAGEABLE = 3e9
"""Bytes/s of a pageable copy, about: traffic over this is the time spent copying (H200: 1.9 GB/s
each way in a job that does little else)."""

COPY_SLOW = 1.5e9
"""Bytes/s of the slowest copies: the time that a copy's line can have spent copying is at most its
traffic over this; the rest was waiting for the work queued before."""

COPY_FAST = 25e9
"""Bytes/s of a pinned copy over PCIe of generation 4, about: the most that a line which was seen to
copy has moved in the time that it was seen."""

COPY_MISSED = 0.02
"""Share of the time in which such a line may have been missed by chance: short copies of pinned
memory carry a job's whole input in one or two hundredths of its time. Less traffic than that is
no sign of other copies."""

COPY_EXPLAINS = 0.4
"""Share of the idle time behind unexplained C calls that copies must fill to be what it was."""

DISPATCH_CPU = 0.80
"""Cores that the rank must use to be dispatching as fast as it can."""

SYNC_WAIT = 0.03
"""Host waits for the device at all: then it is not the dispatch alone that is too slow."""

# -- without a GPU in sight ----------------------------------------------------------------------

ALL_AT_WORK = 0.7
"""Share of the workers at work from which the pipeline is behind (starved jobs: 1.0; a healthy job
that stands in its loader for a third of the host's time: 0.1 to 0.5)."""

# -- no progress ---------------------------------------------------------------------------------

STUCK_S = 30.0
STUCK_STEPS = 100.0
STUCK_LEAST_S = 10.0
"""Main thread in the very same stack for this long, while neither GPU nor workers do anything: 100
of the job's own steps, between 10 and 30 s."""

IDLE_BUSY = 0.02
"""Busy share below which a GPU does nothing."""

IDLE_CPU = 0.05
"""Cores: below it a process does nothing."""
