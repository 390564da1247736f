"""A small PyTorch training job that knows nothing of being watched and writes its own truth.

    python job.py TRUTH WORKERS ITEM_MS STEP_MS

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
    def __init__(self, item_s: float) -> None:
        self.item_s = item_s

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.encode(index)

    def encode(self, index: int) -> torch.Tensor:
        time.sleep(self.item_s)  # a slow disk: whoever watches must not have to fight for a CPU
        total = (index * 31 + 7) % 1_000_003
        return torch.full((64,), float(total % 7))


def train(loader: DataLoader, truth_path: str, step_s: float) -> None:  # type: ignore[type-arg]
    model = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.Linear(2048, 1))
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
    path, workers, item_ms, step_ms = sys.argv[1:]
    train(
        DataLoader(Reviews(float(item_ms) / 1000), batch_size=8, num_workers=int(workers)),
        path,
        float(step_ms) / 1000,
    )
