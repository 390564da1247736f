"""Train one small GPT on each GPU in sight, all from one process, on the same batches."""

from __future__ import annotations

import itertools

import torch
from clock import Clock
from corpus import VOCABULARY, text_loader
from options import Options, load
from pace import measure
from reporting import build_report
from torch import Tensor
from transformer import GPT


class Member:
    """A model with its optimizer, on a device of its own."""

    def __init__(self, options: Options, device: torch.device, context: int) -> None:
        size, self.device = options.size, device
        with device:
            self.model = GPT(VOCABULARY, context, size(1024, 64), size(12, 2), size(16, 2))
        fused = device.type == "cuda"
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=fused)

    def loss(self, batch: Tensor) -> Tensor:
        """Copy the batch here and run the model."""
        batch = batch.to(self.device, non_blocking=True)
        with torch.autocast(self.device.type, torch.bfloat16):
            return self.model.loss(batch)

    def update(self) -> None:
        """One step of the optimizer."""
        self.optimizer.step()
        self.optimizer.zero_grad()


def train_step(members: list[Member], batch: Tensor) -> None:
    """All members, one after the other; their devices work at the same time."""
    for member in members:
        member.loss(batch).backward()
        member.update()


def synchronize_all() -> None:
    """Wait for every device."""
    for index in range(torch.cuda.device_count()):
        torch.cuda.synchronize(index)


def main() -> None:
    """Run the variant."""
    options = load()
    torch.manual_seed(0)
    on_gpu = torch.cuda.is_available()
    devices = [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
    devices = devices or [torch.device("cpu")] * 2
    clock = Clock(options, devices[0])
    context, batch_size = options.size(1024, 64), options.size(32, 8)
    members = [Member(options, device, context) for device in devices]
    sample = torch.randint(VOCABULARY, (batch_size, context + 1))
    pace = measure(lambda: train_step(members, sample), synchronize_all if on_gpu else int)
    clock.header(pace)
    starts = clock.start()
    loader = text_loader(options, pace, batch_size, context, starts)
    report = build_report(options, pace, clock, starts)
    clock.lap("startup")
    batches = iter(loader)
    for step in itertools.count():
        batch = next(batches)
        clock.lap("data_wait")
        losses = [member.loss(batch) for member in members]
        clock.lap("forward")
        for loss in losses:
            loss.backward()
        clock.lap("backward")
        for member in members:
            member.update()
        clock.lap("optimizer")
        report(step, losses[0])
        if clock.step(step, batches):
            return


if __name__ == "__main__":
    main()
