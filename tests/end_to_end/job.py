"""A small PyTorch training job that knows nothing of being watched and writes its own truth.

    python job.py TRUTH WORKERS ITEM_MS STEP_MS [tiny]

``tiny``: operations of some tens of microseconds, and items that are computed, not waited for.

Each line of TRUTH: {"step", "start", "data", "end"}, the UTC times at which the step began (and
the loop asked for its batch), had its batch, and ended.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Reviews(Dataset):  # type: ignore[type-arg]
    def __init__(self, item_s: float, burn: bool) -> None:
        self.item_s, self.burn = item_s, burn

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.encode(index)

    def encode(self, index: int) -> torch.Tensor:
        if not self.burn:
            time.sleep(self.item_s)  # a slow disk: nobody has to fight for a CPU
        until = time.perf_counter() + self.item_s * self.burn
        total = index
        while time.perf_counter() < until:
            total = (total * 31 + 7) % 1_000_003
        return torch.full((64,), float(total % 7))


def network(tiny: bool) -> nn.Module:
    if tiny:
        return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    return nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.Linear(2048, 1))


def train(loader: DataLoader, model: nn.Module, truth_path: str, step_s: float) -> None:  # type: ignore[type-arg]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    truth = Path(truth_path).open("w", buffering=1)  # noqa: SIM115
    batches = iter(loader)
    for step in range(1_000_000):
        start = time.time()
        batch = next(batches)
        data = time.time()
        until = time.perf_counter() + step_s
        while time.perf_counter() < until:
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()
        line = {"step": step, "start": start, "data": data, "end": time.time()}
        truth.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    path, workers, item_ms, step_ms, *options = sys.argv[1:]
    tiny = options == ["tiny"]
    reviews = Reviews(float(item_ms) / 1000, burn=tiny)
    train(
        DataLoader(reviews, batch_size=8, num_workers=int(workers)),
        network(tiny),
        path,
        float(step_ms) / 1000,
    )
