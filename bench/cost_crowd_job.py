"""One rank of a crowded host: native threads that Python knows nothing of, a DataLoader whose
workers wait more than they work, and a loop that computes a little, then waits as for its GPU.

    python bench/cost_crowd_job.py TRUTH --threads 20 --workers 8

``TRUTH`` gets a line for each step: when its computing began and ended, and when the step ended
(UTC seconds).
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ITEM_S, WAIT_S = 0.02, 0.1
LAYERS, WIDTH, BATCH = 12, 64, 8


class Pictures(Dataset[torch.Tensor]):
    """As many as anybody asks for."""

    def __len__(self) -> int:
        return 10_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(ITEM_S)
        return torch.full((WIDTH,), float(index % 10))


def start_native_threads(count: int) -> None:
    """Threads that wait for ever in ``pause``, without Python; signals go to others."""
    libc = ctypes.CDLL(None)
    for started in range(count):
        thread = ctypes.c_ulong()
        if libc.pthread_create(ctypes.byref(thread), None, libc.pause, None):
            raise OSError(f"only {started} of {count} threads could be started")


def train(truth: Path, workers: int) -> None:
    """Until somebody ends it."""
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(LAYERS)]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    batches = iter(DataLoader(Pictures(), batch_size=BATCH, num_workers=workers))
    with truth.open("w", buffering=1) as out:
        for step in itertools.count():
            rows = next(batches)
            began = time.time()
            for _ in range(4):
                loss = model(rows).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            computed = time.time()
            time.sleep(WAIT_S)
            out.write(f"{step} {began:.6f} {computed:.6f} {time.time():.6f}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--workers", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    start_native_threads(options.threads)
    train(options.truth, options.workers)
