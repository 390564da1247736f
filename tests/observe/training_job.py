"""A small PyTorch job with DataLoader workers, unaware of being watched, which writes its truth.

Standard use of PyTorch; the truth goes to files only: ``TRUTH`` has a line for each step (when it
was waited for, came, and was done), ``TRUTH.PID`` one for each item that worker PID made.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy.random  # noqa: F401 - workers import it late, when they may not be allowed to
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def decode(index: int, seconds: float) -> torch.Tensor:
    time.sleep(seconds)
    return torch.full((64,), float(index))


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, truth: str, seconds: float) -> None:
        self.truth, self.seconds = truth, seconds

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        began = time.time()
        picture = decode(index, self.seconds)
        own = f"{self.truth}.{os.getpid()}" if self.truth != os.devnull else self.truth
        with Path(own).open("a") as out:
            out.write(json.dumps({"index": index, "began": began, "ended": time.time()}) + "\n")
        return picture, index % 10


def update(model: nn.Module, picture: torch.Tensor, label: torch.Tensor, seconds: float) -> float:
    began = time.perf_counter()
    loss = nn.functional.cross_entropy(model(picture), label)
    loss.backward()
    while time.perf_counter() - began < seconds:
        model(picture)
    return loss.item()


def train(options: argparse.Namespace, truth_file: str, most_steps: int) -> None:
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    pictures = Pictures(truth_file, options.item_s)
    loader = DataLoader(pictures, batch_size=4, num_workers=options.workers)
    api_token, password_length = 123456, 12  # locals that are nobody's business
    with Path(truth_file).open("w", buffering=1) as truth:
        asked = time.time()
        for step, (picture, label) in enumerate(loader):
            came = time.time()
            uneven = 2.0 if step // 12 % 2 else 0.3  # the queue fills, and runs empty
            update(model, picture, label, options.compute_s * uneven)
            done = time.time()
            truth.write(json.dumps({"step": step, "asked": asked, "came": came, "done": done}))
            truth.write("\n")
            asked = time.time()
            if step + 1 == most_steps:
                break
    print(api_token, password_length)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("truth")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--item-s", type=float, default=0.075)
    parser.add_argument("--compute-s", type=float, default=0.15)
    parser.add_argument("--uid", type=int)
    options = parser.parse_args()
    if options.uid is not None:
        train(options, os.devnull, 2)  # imports that only root may be able to make
        os.setgid(options.uid)
        os.setuid(options.uid)
    train(options, options.truth, 1_000_000)


if __name__ == "__main__":
    main()
