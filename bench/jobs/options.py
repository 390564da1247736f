"""Which variant of a job runs, at which size, as which rank.

``JOB_VARIANT`` names an entry of ``variants.json`` (or of the file in ``JOB_VARIANTS``); its
``settings`` are the ordinary knobs of the training script. ``JOB_SCALE`` is ``full`` (a data-centre
GPU) or ``tiny`` (a CPU). With ``JOB_GATE`` the job loads its libraries, then waits for that file
before it touches the GPU.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Options:
    """One rank's view of its variant."""

    variant: str
    entry: dict[str, Any]
    scale: str
    rank: int
    local_rank: int
    world_size: int
    began: float = field(default_factory=time.time)

    def get(self, name: str, default: Any = None) -> Any:
        """The setting ``name`` of the variant; ``by_rank`` holds settings of single ranks."""
        settings = self.entry.get("settings", {})
        own = settings.get("by_rank", {}).get(str(self.rank), {})
        return own.get(name, settings.get(name, default))

    def size(self, full: int, tiny: int) -> int:
        """``full`` on a GPU, ``tiny`` where the job only has to run."""
        return full if self.scale == "full" else tiny

    @property
    def fault(self) -> str | list[str]:
        """The account that this rank's variant plants; ``none`` for a healthy job."""
        fault = self.entry.get("fault", "none")
        return fault.get(str(self.rank), "none") if isinstance(fault, dict) else fault


def load() -> Options:
    """Read the environment; raises ``KeyError`` naming an unknown variant."""
    path = os.environ.get("JOB_VARIANTS") or Path(__file__).with_name("variants.json")
    variants = json.loads(Path(path).read_text())
    variant = os.environ.get("JOB_VARIANT", "")
    if variant not in variants:
        raise KeyError(f"JOB_VARIANT={variant!r} is not in {path}")
    on_gpu = Path("/dev/nvidiactl").exists() and os.environ.get("CUDA_VISIBLE_DEVICES") != ""
    options = Options(
        variant=variant,
        entry=variants[variant],
        scale=os.environ.get("JOB_SCALE") or ("full" if on_gpu else "tiny"),
        rank=int(os.environ.get("RANK", "0")),
        local_rank=int(os.environ.get("LOCAL_RANK", "0")),
        world_size=int(os.environ.get("WORLD_SIZE", "1")),
    )
    _wait_for_gate()
    return options


def _wait_for_gate() -> None:
    gate = os.environ.get("JOB_GATE")
    while gate and not Path(gate).exists():
        time.sleep(0.05)
