"""An ordinary training script whose workers take long for each item: it waits for its input."""

from __future__ import annotations

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Texts(Dataset):
    """Tokenising costs 20 ms of CPU an item."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.tokenize(index)

    def tokenize(self, index: int) -> torch.Tensor:
        end = time.thread_time() + 0.02
        value = float(index)
        while time.thread_time() < end:
            value = value * 0.5 + 1.0
        return torch.full((64,), value)


def train(seconds: float) -> None:
    model = torch.nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    end = time.monotonic() + seconds
    for batch in DataLoader(Texts(), batch_size=8, num_workers=1):
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
        if time.monotonic() > end:
            return


if __name__ == "__main__":
    torch.set_num_threads(1)
    train(float(sys.argv[1]))
