"""A run that holds a GPU and makes no progress."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwhy.ledger import thresholds as th
from gpuwhy.signals.row import GpuRow, GpuSignals, RunSignals

PAUSE_PHASES = ("checkpoint", "compile", "import")


def works(gpu: GpuSignals) -> bool | None:
    """Does the GPU do anything but spin? None where no counter and no power say so."""
    if gpu.busy is not None and gpu.busy < th.IDLE_BUSY:
        return False
    if gpu.dram is not None or gpu.tensor is not None:
        moves = (gpu.dram or 0.0) >= th.NO_WORK_DRAM or (gpu.tensor or 0.0) >= th.NO_WORK_TENSOR
        return moves or (gpu.sm_active or 0.0) >= th.NO_WORK_SM
    if gpu.power_w is not None and gpu.power_limit_w:
        return gpu.power_w >= th.SPIN_POWER * gpu.power_limit_w
    return None


def stall_reason(row: GpuRow, run: RunSignals) -> str | None:
    """Why the run makes no progress, or None where it does (or cannot be told)."""
    if row.gpu is None or works(row.gpu) is not False:
        return None
    if run.peer_missing:
        return "peer-missing"
    return "no-progress" if _stuck(row.gpu, run) else None


def _stuck(gpu: GpuSignals, run: RunSignals) -> bool:
    """The main thread has stood in one place for far longer than a step, the step counter with it,
    and neither the workers nor (where the GPU is idle) the rank itself uses a CPU. A loop that
    starves sits in one line at every sample too, but its workers work or its counter moves."""
    if run.stuck_s is None or any((run.phases or {}).get(p) for p in PAUSE_PHASES):
        return False
    pace = run.steps_per_second or 0.0
    hundred_steps = max(th.STUCK_LEAST_S, th.STUCK_STEPS / pace) if pace else th.STUCK_S
    longest = min(th.STUCK_S, hundred_steps)
    if run.stuck_s < longest:
        return False
    if run.step_still_s is not None and run.step_still_s < longest / 2:
        return False
    loading = (run.children_cpu or 0.0) > th.IDLE_CPU or bool(run.workers_running)
    at_work = (gpu.busy or 0.0) < th.IDLE_BUSY and (run.cpu or 0.0) > th.IDLE_CPU
    return not (loading or at_work)


def in_hindsight(
    runs: Sequence[RunSignals], shares: Sequence[dict[tuple[str, str], float]]
) -> list[dict[tuple[str, str], float]]:
    """The shares of a window's seconds with what its end tells: a job that is seen to stand still
    has done so since its main thread came to where it stands. (It takes some time to be sure, and
    the accounts of those seconds said what it looked like.)"""
    known = list(shares)
    stood = next((key for key in known[-1] if key[0] == "stalled"), None) if known else None
    since = int(runs[-1].stuck_s or 0.0) if stood else 0
    for i in range(max(0, len(known) - since), len(known)):
        known[i] = {stood: 1.0} if stood else known[i]
    return known
