"""Train a deep residual MLP on rows of a table: many small layers, or few wide ones."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from clock import Clock
from options import Options, load
from pace import Pace, measure
from reporting import build_report
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class Layer(nn.Module):
    """A residual layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape out."""
        return x + F.gelu(self.linear(self.norm(x)))


class Trainer:
    """Model, optimizer and rows of the table, which stays on the device."""

    def __init__(self, options: Options, device: torch.device) -> None:
        self.device = device
        self.width = options.get("width", 256) if options.scale == "full" else 32
        layers = options.get("layers", 24) if options.scale == "full" else 12
        with device:
            body = [Layer(self.width) for _ in range(layers)]
            self.model = nn.Sequential(*body, nn.Linear(self.width, 1))
        fast = device.type == "cuda" and options.get("fused", True)
        grouped: dict[str, Any] = {"fused": True} if fast else {"foreach": False}
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, **grouped)

    def forward(self, rows: Tensor) -> Tensor:
        """Squared error against the row's first column."""
        with torch.autocast(self.device.type, torch.bfloat16):
            return F.mse_loss(self.model(rows)[:, 0].float(), rows[:, 0])

    def train_step(self, rows: Tensor) -> None:
        """All of one step, without anything around it."""
        self.forward(rows).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def choose_batch(options: Options, trainer: Trainer, synchronize: Any) -> tuple[int, Pace]:
    """The batch with which the host's dispatching costs ``dispatch_lost``, and the GPU's pace.

    Time on the device grows with the batch, time to dispatch does not. Two batches that are bound
    by the device give its seconds a row and its fixed part, a small one the dispatching.
    """
    if (batch := options.get("batch")) is not None:
        batch = batch if options.scale == "full" else 64
        rows = torch.randn(batch, trainer.width, device=trainer.device)
        return batch, measure(lambda: trainer.train_step(rows), synchronize)

    def step_s(batch: int) -> float:
        rows = torch.randn(batch, trainer.width, device=trainer.device)
        return measure(lambda: trainer.train_step(rows), synchronize, 10, 4).step_s

    large, most = options.size(1 << 14, 1 << 9), options.size(1 << 18, 1 << 12)
    small_s, half_s, full_s = step_s(256), step_s(large // 2), step_s(large)
    while full_s < 2.5 * small_s and large < most:
        large *= 2
        half_s, full_s = full_s, step_s(large)
    row_s = max((full_s - half_s) / (large // 2), 1e-12)
    fixed_s = max(half_s - row_s * large // 2, 0.0)
    wanted_s = small_s * (1 - options.get("dispatch_lost", 0.5))
    batch = min(max(int((wanted_s - fixed_s) / row_s), 256), large)
    return batch, Pace(min(fixed_s + row_s * batch, small_s), small_s)


def main() -> None:
    """Run the variant."""
    options = load()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clock = Clock(options, device)
    trainer = Trainer(options, device)
    synchronize = torch.cuda.synchronize if device.type == "cuda" else int
    batch, pace = choose_batch(options, trainer, synchronize)
    clock.header(pace, batch=batch)
    table = torch.randn(2 * batch, trainer.width, device=device)
    starts = clock.start()
    report = build_report(options, pace, clock, starts)
    for step in itertools.count():
        first = step * 64 % batch
        rows = table[first : first + batch]
        clock.lap("data_inline")
        loss = trainer.forward(rows)
        clock.lap("forward")
        loss.backward()
        clock.lap("backward")
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()
        clock.lap("optimizer")
        report(step, loss)
        if clock.step(step):
            return


if __name__ == "__main__":
    main()
