"""Bounds on what multiplies series, and how long series stay; each is exported or documented."""

from __future__ import annotations

STALE_S = 10.0
"""A row older than this is not known any more: its series end."""
LINGER_S = 60.0
"""Counters of a run and of a GPU stay this long after it was last seen: a few scrapes."""
RECENT_S = 60
"""Seconds of rows kept for what is a mean over a while."""
WINDOW_S = 60.0
"""Window of the verdicts that are exposed."""
VERDICT_S = 2
"""How often they are drawn."""
OPEN_S = WINDOW_S + 5.0
"""Older seconds are kept packed."""

GPUS = 128
"""GPUs and MIG instances: more than any one host has today."""
RUNS_PER_GPU = 8
"""Ranks of runs on one GPU; a job that restarts under ever new names must not pile up series."""
RANKS_WITHOUT_GPU = 64
"""Ranks whose GPU is not in sight."""
PROCESSES_PER_GPU = 16
FUNCTIONS_PER_RANK = 10
XIDS_PER_GPU = 8
LABEL_LENGTH = 256
"""Characters of a label value; a longer one is cut and ends in an ellipsis."""

EXPORTED = {
    "gpus": GPUS,
    "runs_per_gpu": RUNS_PER_GPU,
    "ranks_without_gpu": RANKS_WITHOUT_GPU,
    "processes_per_gpu": PROCESSES_PER_GPU,
    "functions_per_rank": FUNCTIONS_PER_RANK,
}
"""By the label ``kind`` of ``gpuwhy_series_limit``."""
