"""Train a small GPT with DistributedDataParallel, one rank for each GPU."""

from __future__ import annotations

import itertools
import os
import time
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from clock import Clock
from corpus import VOCABULARY, text_loader
from options import Options, load
from pace import Pace, measure
from periodic import Periodic
from reporting import build_report
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from transformer import GPT


class Trainer:
    """The wrapped model, its optimizer, and how fast this rank goes."""

    def __init__(self, options: Options, device: torch.device) -> None:
        self.options, self.device = options, device
        self.context, self.batch = options.size(1024, 64), options.size(options.get("batch", 16), 8)
        self.length = int(self.context * options.get("length", 1.0))
        size = options.size
        with device:
            gpt = GPT(VOCABULARY, self.context, size(1024, 64), size(12, 2), size(16, 2))
        on_gpu = device.type == "cuda"
        self.model = DistributedDataParallel(gpt, device_ids=[device.index] if on_gpu else None)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=on_gpu)

    def forward(self, batch: Tensor) -> Tensor:
        """Loss of a batch, through the wrapper so that gradients are synchronised."""
        with torch.autocast(self.device.type, torch.bfloat16):
            logits = self.model(batch[:, :-1])
            return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    def train_step(self, batch: Tensor) -> None:
        """All of one step, without anything around it."""
        self.forward(batch).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def paces(self) -> tuple[Pace, Pace]:
        """The pace of full batches with gradients synchronised, and of its own alone."""
        sample = torch.randint(VOCABULARY, (self.batch, self.context + 1), device=self.device)
        wait = torch.cuda.synchronize if self.device.type == "cuda" else int
        together = measure(lambda: self.train_step(sample), wait)
        with self.model.no_sync():
            own = sample[:, : self.length + 1]
            alone = measure(lambda: self.train_step(own), wait, 10, 3)
        dist.barrier()
        return together, alone


def accumulation(options: Options, together: Pace, alone: Pace) -> int:
    """Batches in a step so that synchronising costs about ``comm_lost`` of it."""
    lost = options.get("comm_lost")
    if not lost:
        return options.get("accumulate", 1)
    extra_s = max(together.step_s - alone.step_s, 1e-6)
    count = torch.tensor(extra_s * (1 - lost) / lost / alone.step_s)
    if torch.cuda.is_available():
        count = count.cuda()
    dist.broadcast(count, 0)
    return min(max(round(float(count)), 1), 64)


def bind_threads(cores: list[int]) -> None:
    """Bind every thread that there is, and those to come, to the given cores."""
    for task in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(task.name), cores)


def train(trainer: Trainer, clock: Clock, pace: Pace, accumulate: int) -> None:
    """The loop: steps until the clock says stop."""
    options, device = trainer.options, trainer.device
    starts = clock.start()
    if cores := options.get("own_cores"):
        bind_threads(sorted(os.sched_getaffinity(0))[-cores:])
    loader = text_loader(options, pace, trainer.batch, trainer.context, starts)
    report = build_report(options, pace, clock, starts)
    periodic = Periodic(options, clock)
    sleep_s = pace.serial(options.get("sleep_lost", 0.0))
    clock.lap("startup")
    step, batches = 0, iter(loader)
    for i in itertools.count(1):
        batch = next(batches)[:, : trainer.length + 1]
        clock.lap("data_wait")
        batch = batch.to(device, non_blocking=True)
        clock.lap("h2d_copy")
        trainer.model.require_backward_grad_sync = i % accumulate == 0
        loss = trainer.forward(batch) / accumulate
        clock.lap("forward")
        if sleep_s and time.time() >= starts:
            loss.item()
            clock.lap("sync")
            time.sleep(sleep_s)
            clock.lap("user")
        loss.backward()
        clock.lap("backward")
        if i % accumulate:
            continue
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()
        clock.lap("optimizer")
        report(step, loss)
        periodic.run(trainer.model.module, trainer.optimizer, partial(trainer.forward, batch))
        if clock.step(step, batches):
            return
        step += 1


def main() -> None:
    """Run the variant on this rank."""
    options = load()
    torch.manual_seed(0)
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", options.local_rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    clock = Clock(options, device)
    trainer = Trainer(options, device)
    together, alone = trainer.paces()
    accumulate = accumulation(options, together, alone)
    base = alone if options.get("comm_lost") or options.get("length") else together
    clock.header(
        base.times(accumulate),
        together_s=together.step_s,
        alone_s=alone.step_s,
        accumulate=accumulate,
    )
    train(trainer, clock, together, accumulate)
    os._exit(0)  # the peer may have left already: no farewell over the network


if __name__ == "__main__":
    main()
