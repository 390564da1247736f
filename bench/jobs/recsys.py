"""Train a recommender whose embedding table may live in host memory."""

from __future__ import annotations

import itertools
import time

import torch
from clock import Clock
from options import Options, load
from pace import Pace, measure
from reporting import build_report
from torch import Tensor, nn


class Tower(nn.Module):
    """A wide MLP over a user's embedding."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        layers = [nn.Linear(width, hidden), nn.ReLU()]
        for _ in range(4):
            layers += [nn.Linear(hidden, hidden), nn.ReLU()]
        self.body = nn.Sequential(*layers, nn.Linear(hidden, 1))

    def forward(self, x: Tensor) -> Tensor:
        """A score for each row."""
        return self.body(x)


def table_rows(options: Options, pace: Pace, width: int, device: torch.device) -> int:
    """Rows of the host's table that go to the device and back each step."""
    lost = options.get("copy_lost")
    if not lost:
        return 0
    block = torch.zeros(options.size(1 << 14, 1 << 8), width)
    there = block.to(device)
    began = time.perf_counter()
    for _ in range(3):
        block.to(device)
        there.cpu()
    block_s = (time.perf_counter() - began) / 3
    rows = int(pace.serial(lost) / block_s * len(block))
    return min(max(rows, 1), options.size(1 << 21, 1 << 12))


def main() -> None:
    """Run the variant."""
    options = load()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clock = Clock(options, device)
    width, hidden = options.size(512, 32), options.size(4096, 64)
    batch = options.size(8192, 64)
    model = Tower(width, hidden).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device.type == "cuda")
    users = torch.randn(batch, width, device=device)

    def train_step() -> None:
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(users).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    pace = measure(train_step, torch.cuda.synchronize if device.type == "cuda" else int)
    clock.header(pace)
    table = torch.randn(table_rows(options, pace, width, device), width)
    starts = clock.start()
    report = build_report(options, pace, clock, starts)
    for step in itertools.count():
        rows = None
        if len(table) and time.time() >= starts:
            rows = table.to(device)
            clock.lap("h2d_copy")
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(users).float().square().mean()
        clock.lap("forward")
        loss.backward()
        clock.lap("backward")
        optimizer.step()
        optimizer.zero_grad()
        clock.lap("optimizer")
        if rows is not None:
            table = rows.mul_(0.999).cpu()
            clock.lap("d2h_copy")
        report(step, loss)
        if clock.step(step):
            return


if __name__ == "__main__":
    main()
