"""Train an autoencoder with Lightning."""

from __future__ import annotations

import os
import time
import zlib
from typing import Any

import numpy as np
import torch
from clock import Clock
from costs import Cost, item_cost
from options import Options, load
from pace import Pace, measure
from periodic import confusion_counts
from reporting import build_report
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, Dataset

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl

FEATURES, ROWS = 1024, 256


class Shards(Dataset[Tensor]):
    """Item ``index`` is a shard of rows, parsed from its compressed form."""

    def __init__(self, length: int, cost: Cost) -> None:
        self.length, self.cost = length, cost
        noise = np.random.default_rng(0).integers(0, 8, ROWS * FEATURES, dtype=np.uint8)
        self.packed = zlib.compress(noise.tobytes(), 1)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Tensor:
        return parse_rows(self.packed, index, self.cost.now())


def parse_rows(packed: bytes, index: int, budget_s: float) -> Tensor:
    """Rows of a shard; columns are cleaned until the CPU time is used."""
    until = time.thread_time() + budget_s
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(ROWS, FEATURES)
    rows = np.roll(rows, index % FEATURES, axis=1)
    while time.thread_time() < until:
        clean_column(rows[:, index % FEATURES].tolist())
    return torch.from_numpy(rows)


def clean_column(values: list[int]) -> list[float]:
    """Scale a column to zero mean and unit range, value by value."""
    mean = sum(values) / len(values)
    span = max(values) - min(values) or 1
    return [(value - mean) / span for value in values]


class AutoEncoder(pl.LightningModule):
    """Layers down and up again; the clock is read in its hooks."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        hidden, layers = options.size(8192, 64), options.size(4, 1)
        if options.get("narrow") and options.scale == "full":
            hidden, layers = 512, 48
        body: list[nn.Module] = [nn.Linear(FEATURES, hidden), nn.GELU()]
        for _ in range(layers):
            body += [nn.Linear(hidden, hidden), nn.GELU()]
        self.body = nn.Sequential(*body, nn.Linear(hidden, FEATURES))
        self.clock: Clock | None = None

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW, fused where it can be."""
        fused = next(self.parameters()).is_cuda
        return torch.optim.AdamW(self.parameters(), lr=1e-5, fused=fused)

    def loss(self, rows: Tensor) -> Tensor:
        """Error of the reconstruction of (shards, rows, features) of bytes."""
        values = rows.flatten(0, 1).float() / 8
        return F.mse_loss(self.body(values).float(), values)

    def lap(self, name: str) -> None:
        """Tell the clock, once there is one."""
        if self.clock:
            self.clock.lap(name)

    def transfer_batch_to_device(self, batch: Any, device: Any, dataloader_idx: int) -> Any:
        """The batch has come; copy it."""
        self.lap("data_wait")
        batch = super().transfer_batch_to_device(batch, device, dataloader_idx)
        self.lap("h2d_copy")
        return batch

    def training_step(self, batch: Tensor, _batch_idx: int) -> Tensor:
        """Forward."""
        loss = self.loss(batch)
        self.lap("forward")
        return loss

    def validation_step(self, batch: Tensor, batch_idx: int) -> None:
        """Forward, then counts on the CPU."""
        self.loss(batch).item()
        confusion_counts(batch_idx)

    def on_after_backward(self) -> None:
        """Backward is queued."""
        self.lap("backward")


class Stop(Exception):  # noqa: N818
    """The clock said so."""


class Reporter(pl.Callback):
    """Reports after each step."""

    def __init__(self, clock: Clock, report: Any) -> None:
        self.clock, self.report, self.paused_at = clock, report, 0.0

    def on_train_start(self, *_: Any) -> None:
        """Lightning ends at SIGTERM at once; the clock wants a few steps more."""
        self.clock.listen()

    def on_train_batch_end(self, trainer: Any, _module: Any, outputs: Any, *_: Any) -> None:
        """The optimizer has run."""
        self.clock.lap("optimizer")
        step = trainer.global_step - 1
        self.report(step, outputs["loss"])
        if self.clock.step(step, getattr(trainer.train_dataloader, "_iterator", None)):
            raise Stop

    def on_validation_start(self, *_: Any) -> None:
        """A pause begins."""
        self.paused_at = time.time()

    def on_validation_end(self, *_: Any) -> None:
        """A pause ends."""
        self.clock.note("pause", name="evaluation", t0=self.paused_at, t1=time.time())
        self.clock.lap("evaluation")


def shard_loader(options: Options, pace: Pace, batch: int, starts: float) -> DataLoader[Tensor]:
    """The training loader with the variant's workers and costs."""
    workers = options.get("workers", options.size(8, 2))
    cost = item_cost(options.get, pace, workers, batch, starts)
    return DataLoader(
        Shards(batch * 10**5, cost),
        batch_size=batch,
        num_workers=workers,
        pin_memory=torch.cuda.is_available(),
        persistent_workers=workers > 0,
    )


def bare_pace(model: AutoEncoder, sample: Tensor) -> Pace:
    """The pace of the model without Lightning."""
    optimizer = model.configure_optimizers()

    def train_step() -> None:
        with torch.autocast(sample.device.type, torch.bfloat16):
            loss = model.loss(sample)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return measure(train_step, torch.cuda.synchronize if sample.is_cuda else int)


def main() -> None:
    """Run the variant."""
    options = load()
    pl.seed_everything(0, verbose=False)
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if on_gpu else "cpu")
    clock = Clock(options, device)
    batch = options.size(options.get("batch", 48), 2)
    with device:
        model = AutoEncoder(options)
    sample = torch.zeros(batch, ROWS, FEATURES, dtype=torch.uint8, device=device)
    pace = bare_pace(model, sample)
    clock.header(pace)
    starts = clock.start()
    loader = shard_loader(options, pace, batch, starts)
    every = options.get("evaluate_every", 0)
    trainer = pl.Trainer(
        max_steps=-1,
        accelerator="gpu" if on_gpu else "cpu",
        devices=1,
        precision="bf16-mixed",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        limit_val_batches=options.size(24, 4) if every else 0,
        val_check_interval=every or None,
        callbacks=[Reporter(clock, build_report(options, pace, clock, starts))],
    )
    model.clock = clock
    clock.lap("startup")
    held_out = DataLoader(Shards(batch * 64, Cost()), batch_size=batch) if every else None
    try:
        trainer.fit(model, loader, held_out)
    except Stop:
        os._exit(0)


if __name__ == "__main__":
    main()
