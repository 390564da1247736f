"""One rank of a training job that needs no GPU and little CPU: a torch DataLoader whose workers
sleep where others decode, and a step that waits where others wait for their GPU.

    python bench/own_cost_job.py --workers 8
"""

from __future__ import annotations

import argparse
import queue
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ITEM_S = 0.05
WAIT_S = 0.08
LAYERS = 6


def decode(index: int) -> torch.Tensor:
    """Stands for reading and decoding a picture."""
    time.sleep(ITEM_S)
    return torch.full((64,), float(index))


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    """As many as anybody asks for."""

    def __len__(self) -> int:
        return 10_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return decode(index), index % 10


class Block(nn.Module):
    """One layer, so that a stack has a depth as real ones have."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(64, 64), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(x)


def synchronize() -> None:
    """Stands for the wait until the GPU has done its step."""
    time.sleep(WAIT_S)


def log_forever(lines: queue.Queue[str]) -> None:
    """A thread that waits, as those of loggers do."""
    while True:
        lines.get()


def train(workers: int) -> None:
    """Until somebody ends it."""
    torch.set_num_threads(1)
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=log_forever, args=(lines,), name="logger", daemon=True).start()
    model = nn.Sequential(*(Block() for _ in range(LAYERS)), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Pictures(), batch_size=8, num_workers=workers)
    for step, (pictures, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        synchronize()
        if step % 10 == 0:
            lines.put(f"step {step}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    train(parser.parse_args().workers)
