"""Train a small GPT in plain PyTorch on one GPU."""

from __future__ import annotations

import itertools
import time

import torch
from clock import Clock
from corpus import VOCABULARY, text_loader
from options import Options, load
from pace import Pace, measure
from periodic import Periodic
from reporting import build_report
from torch import Tensor
from transformer import GPT

LENGTHS = (1.0, 0.25, 0.5, 1.0, 0.125, 0.75)


class Trainer:
    """Model, optimizer and one optimisation step of ``accumulate`` batches."""

    def __init__(self, options: Options, device: torch.device, context: int) -> None:
        self.device = device
        size = options.size
        with device:
            gpt = GPT(VOCABULARY, context, size(1024, 64), size(12, 2), size(16, 2))
        self.model = gpt
        if options.get("compile"):
            for block in gpt.blocks:
                block.compile()
        fused = device.type == "cuda"
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=fused)

    def forward(self, batch: Tensor) -> Tensor:
        """The loss of a batch on the device."""
        with torch.autocast(self.device.type, torch.bfloat16):
            return self.model.loss(batch)

    def train_step(self, batch: Tensor) -> None:
        """All of one step, without anything around it."""
        self.forward(batch).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def train(options: Options, trainer: Trainer, clock: Clock, pace: Pace | None) -> None:
    """The loop: steps until the clock says stop."""
    device, context, batch_size = trainer.device, options.size(1024, 64), options.size(16, 8)
    accumulate, uneven = options.get("accumulate", 1), options.get("uneven", False)
    starts = clock.start()
    loader = text_loader(options, pace, batch_size, context, starts)
    report = build_report(options, pace, clock, starts)
    periodic = Periodic(options, clock)
    held_out = torch.randint(VOCABULARY, (batch_size, context + 1), device=device)
    clock.lap("startup")
    step = 0
    for _epoch in itertools.count():
        batches = iter(loader)
        for i, batch in enumerate(batches, start=1):
            clock.lap("data_wait")
            if uneven:
                batch = batch[:, : int(context * LENGTHS[step % len(LENGTHS)]) + 1]
            batch = batch.to(device, non_blocking=True)
            clock.lap("h2d_copy")
            loss = trainer.forward(batch) / accumulate
            clock.lap("forward")
            loss.backward()
            clock.lap("backward")
            if i % accumulate:
                continue
            trainer.optimizer.step()
            trainer.optimizer.zero_grad()
            clock.lap("optimizer")
            report(step, loss)
            periodic.run(trainer.model, trainer.optimizer, lambda: trainer.forward(held_out))
            if step == 1 and options.get("compile"):
                clock.note("pause", name="startup", t0=options.began, t1=time.time())
            if clock.step(step, batches):
                return
            step += 1


def main() -> None:
    """Run the variant."""
    options = load()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clock = Clock(options, device)
    context, batch_size = options.size(1024, 64), options.size(16, 8)
    trainer = Trainer(options, device, context)
    pace = None
    if options.get("measure", True):
        sample = torch.randint(VOCABULARY, (batch_size, context + 1), device=device)
        synchronize = torch.cuda.synchronize if device.type == "cuda" else int
        pace = measure(lambda: trainer.train_step(sample), synchronize)
    clock.header(pace and pace.times(options.get("accumulate", 1)))
    train(options, trainer, clock, pace)


if __name__ == "__main__":
    main()
