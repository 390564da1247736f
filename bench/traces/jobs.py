"""Small training jobs, each with one planted cause, to be profiled and recorded.

The story is one small GPT in three acts, each one change away from the last: its loader is too
slow (``story_1_data``); with cached items it keeps up, and the launches are the limit
(``story_2_launch``); with the whole step replayed as a CUDA graph, the GPU is busy
(``story_3_graph``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

LOOP = 5_000
LOG_EVERY = 20


def burn(seconds: float) -> int:
    """Plain Python for so long, in few calls: a profiler with stacks records every one."""
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        for number in range(LOOP):
            count += number
    return count


Step = Callable[[int], None]


@dataclass
class Job:
    """``step`` does one training step of the number given; ``mended`` does it without the fault,
    in ``lost`` less of the time, which is the truth that verdicts are held against."""

    step: Step
    mended: Step | None = None
    stacks: bool = False  # profile with Python stacks


Make = Callable[[torch.device], Job]


# -- the story -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """Of the GPT: large enough to make a large GPU wait, small enough to wait for its launches."""

    width: int = 512
    layers: int = 8
    length: int = 128
    batch: int = 8
    vocabulary: int = 8192

    @classmethod
    def on(cls, device: torch.device) -> Size:
        """Tiny where there is no GPU."""
        tiny = cls(width=32, layers=2, length=16, vocabulary=64)
        return cls() if device.type == "cuda" else tiny


class Texts(Dataset[Tensor]):
    """Texts of which each costs ``item_s`` of CPU to tokenise."""

    def __init__(self, item_s: float, size: Size) -> None:
        self.item_s = item_s
        self.size = size

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Tensor:
        return self.tokenize(index)

    def tokenize(self, index: int) -> Tensor:
        """The work on a text; none where tokens were cached."""
        burn(self.item_s)
        return (torch.arange(self.size.length + 1) * (index % 97 + 1)) % self.size.vocabulary


class Block(nn.Module):
    """One layer of a GPT."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 64)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        size, length, width = x.shape
        parts = self.qkv(self.before(x)).view(size, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(size, length, width))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Gpt(nn.Module):
    """Tokens in, loss out."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.blocks = nn.Sequential(*[Block(size.width) for _ in range(size.layers)])
        self.head = nn.Linear(size.width, size.vocabulary)

    def forward(self, batch: Tensor) -> Tensor:
        logits = self.head(self.blocks(self.tokens(batch[:, :-1])))
        return functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


def story(item_s: float, graph: bool = False) -> Make:
    """The job of the story: what an item costs, and whether the step is replayed."""

    def make(device: torch.device) -> Job:
        size = Size.on(device)
        model = Gpt(size).to(device, torch.bfloat16 if device.type == "cuda" else torch.float32)
        graph_here = graph and device.type == "cuda"
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=graph_here)
        texts = Texts(item_s, size)
        kept = torch.stack([texts[index] for index in range(size.batch)]).to(device)

        def train_on(batch: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = model(batch)
            loss.backward()
            optimizer.step()
            return loss.detach()

        advance = captured(train_on, optimizer, kept) if graph_here else train_on
        loader = batches(texts, size.batch, device)  # its thread would disturb the capture

        def train_step(number: int) -> None:
            batch = next(loader).to(device, non_blocking=True)
            loss = advance(batch)
            if number % LOG_EVERY == 0:
                loss.item()

        def on_one_batch(number: int) -> None:
            advance(kept)

        return Job(train_step, mended=on_one_batch)

    return make


def batches(texts: Texts, size: int, device: torch.device) -> Iterator[Tensor]:
    """A loader with two workers, as the acts have it."""
    pin = device.type == "cuda"
    return iter(DataLoader(texts, batch_size=size, num_workers=2, pin_memory=pin))


def captured(
    train_on: Callable[[Tensor], Tensor], optimizer: torch.optim.Optimizer, example: Tensor
) -> Callable[[Tensor], Tensor]:
    """The step as one CUDA graph, as PyTorch's notes on CUDA graphs do it."""
    held = example.clone()
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            train_on(held)
    torch.cuda.current_stream().wait_stream(aside)
    optimizer.zero_grad()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = train_on(held)

    def replay(batch: Tensor) -> Tensor:
        held.copy_(batch, non_blocking=True)
        graph.replay()
        return loss

    return replay


# -- other causes ----------------------------------------------------------------------------------


def large(device: torch.device) -> int:
    """A width of layers that fills a large GPU; small where there is none."""
    return 4096 if device.type == "cuda" else 64


def large_layers(device: torch.device, count: int = 8, width: int | None = None) -> nn.Module:
    """Few layers, each far longer than a launch."""
    width = large(device) if width is None else width
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(count)]).to(device)


def sync_bound(device: torch.device) -> Job:
    """Reads the loss after every step, then does 30 ms of Python with it."""
    model = large_layers(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    batch = torch.randn(large(device) // 2, large(device), device=device)
    history: list[float] = []

    def update_metrics(loss: float) -> None:
        history.append(loss)
        burn(0.030)

    def on_the_gpu(number: int) -> Tensor:
        loss: Tensor = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def train_step(number: int) -> None:
        update_metrics(on_the_gpu(number).item())

    def without_metrics(number: int) -> None:
        on_the_gpu(number)

    return Job(train_step, mended=without_metrics, stacks=True)


def copy_bound(device: torch.device) -> Job:
    """Sends 128 MiB of pageable memory to the GPU and back, each step."""
    model = large_layers(device, count=4)
    host = torch.randn(32, large(device) // 4, large(device) // 4)
    batch = torch.randn(large(device) // 8, large(device), device=device)

    def on_the_gpu(number: int) -> None:
        model(batch).sum().backward()

    def train_step(number: int) -> None:
        resident = host.to(device)
        on_the_gpu(number)
        resident.mul_(0.5).cpu()

    return Job(train_step, mended=on_the_gpu)


def kernels(device: torch.device) -> Job:
    """A matrix product, an elementwise chain, a reduction, a gather and a tiny kernel, for ncu."""
    a = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    x = torch.randn(64 << 20, device=device)
    index = torch.randint(0, x.numel(), (1 << 22,), device=device)
    tiny = torch.randn(64, device=device)

    def step(number: int) -> None:
        a @ a
        functional.gelu(x)
        x.sum()
        x[index]
        tiny.add_(1.0)

    return Job(step)


JOBS: dict[str, Make] = {
    "story_1_data": story(0.015),
    "story_2_launch": story(0.0),
    "story_3_graph": story(0.0, graph=True),
    "sync_bound": sync_bound,
    "copy_bound": copy_bound,
    "kernels": kernels,
}
