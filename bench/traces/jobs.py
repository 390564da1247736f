"""Small training jobs, each with one planted cause, for the PyTorch profiler and for ncu.

The story has three acts, all with the same model of many small layers: the loader is too slow
(``story_1_data``); mended, the launches are (``story_2_launch``); replayed as a CUDA graph, the
GPU works (``story_3_graph``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

WIDTH = 256


LOOP = 5_000


def burn(seconds: float) -> int:
    """Plain Python for so long, in few calls: a profiler with stacks records every one."""
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        for number in range(LOOP):
            count += number
    return count


class Samples(Dataset[Tensor]):
    """Items that cost ``seconds`` of CPU each."""

    def __init__(self, seconds: float, shape: tuple[int, ...] = (WIDTH,)) -> None:
        self.seconds = seconds
        self.shape = shape

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Tensor:
        return self.augment(torch.full(self.shape, float(index % 7)))

    def augment(self, sample: Tensor) -> Tensor:
        """The work on an item."""
        burn(self.seconds)
        return sample


def small_layers(count: int, device: torch.device) -> nn.Module:
    """Many layers, each a few microseconds on a large GPU."""
    layers: list[nn.Module] = []
    for _ in range(count):
        layers += [nn.Linear(WIDTH, WIDTH), nn.GELU()]
    return nn.Sequential(*layers).to(device)


def large(device: torch.device) -> int:
    """A width of layers that fills a large GPU; small where there is none."""
    return 4096 if device.type == "cuda" else 64


def large_layers(device: torch.device, count: int = 8) -> nn.Module:
    """Few layers, each far longer than a launch."""
    width = large(device)
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(count)]).to(device)


@dataclass
class Job:
    """``step`` does one training step of the number given."""

    step: Callable[[int], None]
    stacks: bool = False  # profile with Python stacks
    close: Callable[[], None] = lambda: None


Make = Callable[[torch.device], Job]


def batches(dataset: Samples, size: int, workers: int) -> Iterator[Tensor]:
    """Batches without end."""
    while True:
        yield from DataLoader(dataset, batch_size=size, num_workers=workers, pin_memory=True)


def story(item_s: float, workers: int, graph: bool = False) -> Make:
    """The job of the story."""

    def make(device: torch.device) -> Job:
        model = small_layers(24, device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        loader = batches(Samples(item_s), 32, workers)
        forward = model
        if graph and device.type == "cuda":
            example = torch.zeros(32, WIDTH, device=device)
            forward = torch.cuda.make_graphed_callables(model, (example,))

        def train_step(number: int) -> None:
            batch = next(loader).to(device, non_blocking=True)
            forward(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=not graph)

        return Job(train_step, stacks=True)

    return make


def sync_bound(device: torch.device) -> Job:
    """Reads the loss after every step, then does 30 ms of Python with it."""
    model = large_layers(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    batch = torch.randn(large(device) // 2, large(device), device=device)
    history: list[float] = []

    def update_metrics(loss: float) -> None:
        history.append(loss)
        burn(0.030)

    def train_step(number: int) -> None:
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        update_metrics(loss.item())

    return Job(train_step, stacks=True)


def copy_bound(device: torch.device) -> Job:
    """Sends 128 MiB of pageable memory to the GPU and back, each step."""
    model = large_layers(device, count=4)
    host = torch.randn(32, large(device) // 4, large(device) // 4)
    batch = torch.randn(large(device) // 8, large(device), device=device)

    def train_step(number: int) -> None:
        resident = host.to(device)
        model(batch).sum().backward()
        resident.mul_(0.5).cpu()

    return Job(train_step)


def kernels(device: torch.device) -> Job:
    """A matrix product, an elementwise chain, a reduction, a gather and a tiny kernel, for ncu."""
    a = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    x = torch.randn(64 << 20, device=device)
    index = torch.randint(0, x.numel(), (1 << 22,), device=device)
    tiny = torch.randn(64, device=device)

    def step(number: int) -> None:
        a @ a
        torch.nn.functional.gelu(x)
        x.sum()
        x[index]
        tiny.add_(1.0)

    return Job(step)


JOBS: dict[str, Make] = {
    "story_1_data": story(0.004, 2),
    "story_2_launch": story(0.0, 4),
    "story_3_graph": story(0.0, 4, graph=True),
    "sync_bound": sync_bound,
    "copy_bound": copy_bound,
    "kernels": kernels,
}
