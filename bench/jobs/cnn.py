"""Train a residual convolution net on pictures, in plain PyTorch on one GPU."""

from __future__ import annotations

import itertools
import time
from typing import Any

import torch
from clock import Clock
from options import Options, load
from pace import Pace, measure
from periodic import Periodic
from pictures import picture_loader
from reporting import build_report
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class Residual(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Keeps or halves the side."""
        return F.relu(self.body(x) + self.shortcut(x))


def build_model(width: int, depths: tuple[int, ...]) -> nn.Module:
    """A residual net of four stages."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = width
    for stage, depth in enumerate(depths):
        for i in range(depth):
            outputs = width << stage
            layers.append(Residual(channels, outputs, 2 if stage and i == 0 else 1))
            channels = outputs
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]
    return nn.Sequential(*layers, *head)


class Trainer:
    """Model, optimizer, loss of a batch of raw pixels."""

    def __init__(self, options: Options, device: torch.device) -> None:
        depths = (3, 4, 6, 3) if options.scale == "full" else (1, 1)
        self.device = device
        self.model = build_model(options.size(128, 16), depths).to(
            device, memory_format=torch.channels_last
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def forward(self, pixels: Tensor, classes: Tensor) -> Tensor:
        """Normalise on the device, run the net."""
        images = pixels.permute(0, 3, 1, 2).to(torch.float32).div(127.5).sub(1.0)
        with torch.autocast(self.device.type, torch.bfloat16):
            return F.cross_entropy(self.model(images).float(), classes)

    def train_step(self, pixels: Tensor, classes: Tensor) -> None:
        """All of one step, without anything around it."""
        self.forward(pixels, classes).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def extra_views(options: Options, pace: Pace, device: torch.device) -> Tensor | None:
    """More views of each batch in ordinary (pageable) memory, as many as the variant copies."""
    lost = options.get("copy_lost")
    if not lost:
        return None
    block = torch.zeros(options.size(64 << 20, 1 << 20), dtype=torch.uint8)
    block.to(device)
    began = time.perf_counter()
    for _ in range(3):
        block.to(device)
    block_s = (time.perf_counter() - began) / 3
    wanted = int(pace.serial(lost) / block_s * block.numel())
    most = options.size(4 << 30, 4 << 20)
    return torch.zeros(min(max(wanted, 1 << 20), most), dtype=torch.uint8)


def train(options: Options, trainer: Trainer, clock: Clock, pace: Pace, batch: int) -> None:
    """The loop: steps until the clock says stop."""
    device, side = trainer.device, options.size(160, 64)
    views = extra_views(options, pace, device)
    starts = clock.start()
    loader: Any = picture_loader(options, pace, batch, side, starts)
    report = build_report(options, pace, clock, starts)
    periodic = Periodic(options, clock)
    held_out = torch.zeros(batch, side, side, 3, dtype=torch.uint8, device=device)
    zeros = torch.zeros(batch, dtype=torch.long, device=device)
    clock.lap("startup")
    batches = iter(loader)
    for step in itertools.count():
        pixels, classes = next(batches)
        clock.lap("data_wait")
        pixels = pixels.to(device, non_blocking=True)
        classes = classes.to(device, non_blocking=True)
        if views is not None:
            views.to(device)
        clock.lap("h2d_copy")
        loss = trainer.forward(pixels, classes)
        clock.lap("forward")
        loss.backward()
        clock.lap("backward")
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()
        clock.lap("optimizer")
        report(step, loss)
        periodic.run(trainer.model, trainer.optimizer, lambda: trainer.forward(held_out, zeros))
        if clock.step(step, batches):
            return


def main() -> None:
    """Run the variant."""
    options = load()
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clock = Clock(options, device)
    batch, side = options.size(256, 16), options.size(160, 64)
    trainer = Trainer(options, device)
    pixels = torch.zeros(batch, side, side, 3, dtype=torch.uint8, device=device)
    classes = torch.zeros(batch, dtype=torch.long, device=device)
    synchronize = torch.cuda.synchronize if device.type == "cuda" else int
    pace = measure(lambda: trainer.train_step(pixels, classes), synchronize, warm_up=10)
    clock.header(pace)
    train(options, trainer, clock, pace, batch)


if __name__ == "__main__":
    main()
