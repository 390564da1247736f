"""What each call of the driver's library costs, as the exporter makes them.

    python -m bench.own_cost_nvml [--seconds 20]

Reads every GPU with the exporter's own source at its own pace and times each call of nvidia-ml-py:
how often, CPU and wall time of one, CPU a second and GPU. Changes nothing on the GPU.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pynvml

from gpuwhy.observe.nvml import NvmlSource


@dataclass
class Calls:
    """Calls of one function: how many, and the seconds that they took."""

    count: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    longest_s: float = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench.own_cost_nvml", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--seconds", type=float, default=20)
    seconds = parser.parse_args().seconds
    calls: dict[str, Calls] = {}
    for name in dir(pynvml):
        if name.startswith(("nvmlDevice", "nvmlGpm", "nvmlEvent")):
            setattr(pynvml, name, timed(getattr(pynvml, name), calls, name))
    source = NvmlSource()
    source.poll(time.time())  # initialises, and looks up what does not change
    calls.clear()
    spent, gpus, began = poll_for(source, seconds)
    source.close()
    if not gpus:
        sys.stderr.write("bench.own_cost_nvml: no GPU is in sight: see gpuwhy doctor\n")
        return 1
    sys.stdout.write(table(calls, spent, gpus, time.monotonic() - began))
    return 0


def timed(function: Callable[..., Any], calls: dict[str, Calls], name: str) -> Callable[..., Any]:
    """The same function; what it takes is added up. Calls are told apart by a number given."""

    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        told = [str(arg) for arg in args[1:] if isinstance(arg, int) and arg < 100]
        kept = calls.setdefault(" ".join([name, *told]), Calls())
        wall, cpu = time.monotonic(), time.thread_time()
        try:
            return function(*args)
        finally:
            took = time.monotonic() - wall
            kept.count += 1
            kept.cpu_s += time.thread_time() - cpu
            kept.wall_s += took
            kept.longest_s = max(kept.longest_s, took)

    return wrapper


def poll_for(source: NvmlSource, seconds: float) -> tuple[float, int, float]:
    """CPU seconds used, number of GPUs, and the (monotonic) begin."""
    began = time.monotonic()
    cpu, uuids, polls = time.thread_time(), set(), 0
    while time.monotonic() < began + seconds:
        uuids |= {o["uuid"] for o in source.poll(time.time()) if o["kind"] == "gpu"}
        polls += 1
        time.sleep(max(0.0, began + polls * source.period_s - time.monotonic()))
    return time.thread_time() - cpu, len(uuids), began


def table(calls: dict[str, Calls], spent: float, gpus: int, seconds: float) -> str:
    """The calls, the dearest first, and all together with what Python takes between them."""
    lines = ["calls/s/GPU  CPU us  wall us  longest us  CPU ms/s/GPU  call"]
    for name, call in sorted(calls.items(), key=lambda item: -item[1].cpu_s):
        lines.append(
            f"{call.count / seconds / gpus:11.2f} {1e6 * call.cpu_s / call.count:7.0f} "
            f"{1e6 * call.wall_s / call.count:8.0f} {1e6 * call.longest_s:11.0f} "
            f"{1e3 * call.cpu_s / seconds / gpus:13.3f}  {name}"
        )
    calling = sum(call.cpu_s for call in calls.values())
    rate = 1e3 / seconds / gpus
    lines.append(
        f"{gpus} GPUs, {seconds:.0f} s: {spent * rate:.2f} ms/s/GPU in all, "
        f"{calling * rate:.2f} within calls"
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
