"""Runs an NvmlSource on whatever libnvidia-ml.so.1 the loader finds: one poll for each line.

A line of standard input is the ``now`` of a poll, or ``describe``; the answer is one line of JSON.
"""

import json
import sys
from pathlib import Path

from gpuwhy.observe.nvml import NvmlSource


def main(proc: str, pci: str) -> None:
    source = NvmlSource(proc=Path(proc), pci=Path(pci))
    for line in sys.stdin:
        if line.strip() == "describe":
            answer = source.describe()
        else:
            answer = {
                "observations": source.poll(float(line)),
                "deadline_s": source.deadline_s,
                "restart_wanted": source.restart_wanted,
            }
        print(json.dumps(answer, allow_nan=False), flush=True)
    source.close()


main(*sys.argv[1:])
