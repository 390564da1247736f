"""Train a vision transformer with Accelerate."""

from __future__ import annotations

import itertools
import os
import time
from typing import Any

import torch
from accelerate import Accelerator
from clock import Clock
from options import Options, load
from pace import Pace, measure
from periodic import Periodic
from pictures import picture_loader
from reporting import build_report
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from transformer import Block


class ViT(nn.Module):
    """Patches of a picture in, logits of its class out."""

    def __init__(self, side: int, patch: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Parameter(torch.zeros(1, (side // patch) ** 2, width))
        self.blocks = nn.Sequential(*[Block(width, heads, causal=False) for _ in range(layers)])
        self.head = nn.Linear(width, 1000)

    def forward(self, pixels: Tensor) -> Tensor:
        """``pixels`` is (batch, side, side, 3) of bytes."""
        images = pixels.permute(0, 3, 1, 2).float().div(127.5).sub(1.0)
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.head(self.blocks(x).mean(1))


def pageable_bytes(options: Options, pace: Pace, device: torch.device) -> int:
    """Bytes of activations that go to ordinary host memory each step."""
    lost = options.get("copy_lost")
    if not lost:
        return 0
    block = torch.zeros(options.size(64 << 20, 1 << 20), dtype=torch.uint8, device=device)
    block.cpu()
    began = time.perf_counter()
    for _ in range(3):
        block.cpu()
    block_s = (time.perf_counter() - began) / 3
    wanted = int(pace.serial(lost) / block_s * block.numel())
    return min(wanted, options.size(4 << 30, 4 << 20))


def train(options: Options, parts: tuple[Any, ...], clock: Clock, pace: Pace, batch: int) -> None:
    """The loop: steps until the clock says stop."""
    accelerator, model, optimizer = parts
    device, side = accelerator.device, options.size(224, 32)
    starts = clock.start()
    loader = accelerator.prepare(picture_loader(options, pace, batch, side, starts))
    report = build_report(options, pace, clock, starts)
    periodic = Periodic(options, clock)
    kept = torch.zeros(pageable_bytes(options, pace, device), dtype=torch.uint8, device=device)
    held_out = torch.zeros(batch, side, side, 3, dtype=torch.uint8, device=device)
    clock.lap("startup")
    batches = iter(loader)
    for step in itertools.count():
        pixels, classes = next(batches)
        clock.lap("data_wait")
        with accelerator.autocast():
            loss = F.cross_entropy(model(pixels).float(), classes)
        clock.lap("forward")
        accelerator.backward(loss)
        clock.lap("backward")
        optimizer.step()
        optimizer.zero_grad()
        clock.lap("optimizer")
        if len(kept):
            kept.cpu()
            clock.lap("d2h_copy")
        report(step, loss)
        periodic.run(model, optimizer, lambda: model(held_out).float().mean())
        if clock.step(step, getattr(loader, "_iterator", None)):
            return


def main() -> None:
    """Run the variant."""
    options = load()
    torch.manual_seed(0)
    on_gpu = torch.cuda.is_available()
    accelerator = Accelerator(mixed_precision="bf16" if on_gpu else "no", cpu=not on_gpu)
    device = accelerator.device
    clock = Clock(options, device)
    batch, side = options.size(128, 8), options.size(224, 32)
    size = options.size
    bare = ViT(side, 16, size(768, 32), size(12, 2), size(12, 2))
    model, optimizer = accelerator.prepare(
        bare, torch.optim.AdamW(bare.parameters(), lr=1e-4, fused=on_gpu)
    )
    pixels = torch.zeros(batch, side, side, 3, dtype=torch.uint8, device=device)
    classes = torch.zeros(batch, dtype=torch.long, device=device)

    def train_step() -> None:
        with accelerator.autocast():
            loss = F.cross_entropy(model(pixels).float(), classes)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

    pace = measure(train_step, torch.cuda.synchronize if on_gpu else int)
    clock.header(pace)
    train(options, (accelerator, model, optimizer), clock, pace, batch)
    os._exit(0)


if __name__ == "__main__":
    main()
