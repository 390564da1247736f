"""The idle-time breakdown of HolisticTraceAnalysis as JSON; runs in an environment with HTA."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from hta.trace_analysis import TraceAnalysis  # noqa: E402

if __name__ == "__main__":
    path = Path(sys.argv[1])
    analysis = TraceAnalysis(
        trace_files={0: str(path)}, trace_dir=str(path.parent), include_last_profiler_step=True
    )
    table, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    rows = table[["stream", "idle_category", "idle_time"]].to_dict("records")
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(str(row["stream"]), {})[row["idle_category"]] = row["idle_time"] / 1e6
    json.dump(found, sys.stdout)
