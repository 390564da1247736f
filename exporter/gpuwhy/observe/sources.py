"""The sources of a host, each built on its own: one that cannot be is reported, others go on."""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from gpuwhy.observe.hub import Hub
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.options import NAMES, Options
from gpuwhy.observe.runner import Source

log = logging.getLogger(__name__)


def build(options: Options, hub: Hub) -> tuple[list[Source], list[Observation]]:
    """The sources that could be built, and reports of those that could not."""
    built: list[Source] = []
    failed: list[Observation] = []
    wanted = options.get("sources", list(NAMES))
    for name, builder in BUILDERS.items():
        if name not in wanted:
            continue
        try:
            built.append(builder(options, hub))
        except Exception as error:
            log.exception("a source cannot be built", extra={"source": name})
            failed.append(
                {
                    "t": time.time(),
                    "kind": "source",
                    "source": name,
                    "up": False,
                    "why": f"{name} cannot be built: {type(error).__name__}: {error}",
                    "remedy": "install gpuwhy anew with its dependencies: pip install gpuwhy",
                }
            )
    return built, failed


def _nvml(options: Options, hub: Hub) -> Source:
    from gpuwhy.observe.nvml import NvmlSource

    return NvmlSource(proc=_proc(options))


def _processes(options: Options, hub: Hub) -> Source:
    from gpuwhy.observe.processes import ProcessSource

    hub.processes = ProcessSource(
        proc=str(_proc(options)),
        cgroup_mount=options.get("cgroup", "/sys/fs/cgroup"),
        sys=options.get("sys", "/sys"),
        observer=os.getpid(),
        parent=os.getppid(),
    )
    return hub.processes


def _stacks(options: Options, hub: Hub) -> Source:
    from gpuwhy.observe.stacks import StackSource
    from gpuwhy.observe.stacks_budget import CLOSE, STEADY

    pace = CLOSE if options.get("pace") == "close" else STEADY
    share = options.get("max_overhead")
    if share is not None:
        pace = dataclasses.replace(pace, share_per_rank=share, least_share=share)
    hub.stacks = StackSource(pace, hub.pressure, _proc(options))
    return hub.stacks


def _host(options: Options, hub: Hub) -> Source:
    from gpuwhy.observe.host import HostSource

    return HostSource(proc=str(_proc(options)), sys=options.get("sys", "/sys"))


def _nccl_ras(options: Options, hub: Hub) -> Source:
    from gpuwhy.observe.nccl_ras import RasSource

    return RasSource(hub.ras_addresses, hub.ras_ranks, str(_proc(options)))


def _infiniband(options: Options, hub: Hub) -> Source:
    from gpuwhy.observe.infiniband import InfinibandSource

    return InfinibandSource()


def _proc(options: Options) -> Path:
    return Path(options.get("proc", "/proc"))


BUILDERS: dict[str, Callable[[Options, Hub], Source]] = {
    "nvml": _nvml,
    "processes": _processes,
    "stacks": _stacks,
    "host": _host,
    "nccl_ras": _nccl_ras,
    "infiniband": _infiniband,
}
