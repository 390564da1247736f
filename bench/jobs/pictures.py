"""Pictures made in code: compressed in memory, in a file, or behind a small object store."""

from __future__ import annotations

import os
import random
import tempfile
import time
import urllib.request
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from costs import Cost, item_cost
from options import Options
from pace import Pace
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

BLOCK = 1 << 18
SHARD = 32
Item = tuple[Tensor, int]


@lru_cache(maxsize=1)
def encoded(side: int) -> bytes:
    """One compressed picture of ``side`` x ``side`` pixels; every item decodes it anew."""
    ramp = np.add.outer(np.arange(side), np.arange(side)).astype(np.uint8)
    blocks = np.random.default_rng(0).integers(0, 16, (side, side // 16, 3), dtype=np.uint8)
    return zlib.compress((ramp[:, :, None] + blocks.repeat(16, axis=1)).tobytes(), 6)


def decode_image(data: bytes, side: int, index: int, budget_s: float) -> Tensor:
    """Pixels of a picture, shifted by its index; filters run until the CPU time is used."""
    until = time.thread_time() + budget_s
    pixels = np.frombuffer(zlib.decompress(data), np.uint8).reshape(side, side, 3)
    pixels = np.roll(pixels, index % side, axis=1)
    while time.thread_time() < until:
        pixels = unfilter_rows(pixels)
    return torch.from_numpy(np.ascontiguousarray(pixels))


def unfilter_rows(pixels: np.ndarray) -> np.ndarray:
    """Undo the 'up' filter of each row, as a PNG decoder does."""
    rows = pixels.copy()
    for i in range(1, len(rows)):
        rows[i] += rows[i - 1]
    return rows


def read_blocks(path: str, count: int, seed: int) -> int:
    """Read ``count`` blocks at random from storage, past the page cache."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer = _aligned()
    total, rng = 0, random.Random(seed)
    size = os.fstat(handle).st_size
    for _ in range(count):
        os.lseek(handle, rng.randrange(size // BLOCK) * BLOCK, os.SEEK_SET)
        total += os.readv(handle, [buffer])
    os.close(handle)
    return total


@lru_cache(maxsize=1)
def _aligned() -> Any:
    import mmap

    return mmap.mmap(-1, BLOCK)


def fetch_object(url: str) -> bytes:
    """One object of the store."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


class Pictures(Dataset[Item]):
    """Item ``index``: pixels (side, side, 3) as bytes, and its class.

    Behind a store, the first of every ``SHARD`` items fetches the object of them all.
    """

    def __init__(self, length: int, side: int, cost: Cost, **source: Any) -> None:
        self.length, self.side, self.cost = length, side, cost
        self.path, self.blocks = source.get("path"), source.get("blocks", 0)
        self.url, self.as_float = source.get("url"), source.get("as_float", False)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Item:
        data = encoded(self.side)
        if self.path:
            read_blocks(self.path, self.blocks, index)
        if self.url and index % SHARD == 0 and (wait := self.cost.now() * SHARD):
            fetch_object(f"{self.url}/{index // SHARD}?wait={wait:.6f}")
        image = decode_image(data, self.side, index, 0.0 if self.url else self.cost.now())
        return (image.float() if self.as_float else image), index % 1000


def disk_source(item_s: float, size: int) -> dict[str, Any]:
    """A file on disk, and how many of its blocks take ``item_s`` seconds to read."""
    path = Path(tempfile.gettempdir()) / f"shard-{os.getpid()}.bin"
    noise = np.random.default_rng(0).bytes(BLOCK)
    with path.open("wb") as file:
        for _ in range(size // BLOCK):
            file.write(noise)
        os.fsync(file.fileno())
    began, probe = time.perf_counter(), 200
    read_blocks(str(path), probe, 1)
    block_s = (time.perf_counter() - began) / probe
    return {"path": str(path), "blocks": max(round(item_s / block_s), 1)}


def picture_loader(
    options: Options, pace: Pace | None, batch: int, side: int, starts: float = 0.0
) -> DataLoader[Item]:
    """The training loader with the variant's storage, workers and costs."""
    workers = options.get("workers", options.size(12, 2))
    cost = item_cost(options.get, pace, workers, batch, starts)
    source: dict[str, Any] = {"as_float": options.get("as_float", False)}
    if options.get("storage") == "disk":
        source |= disk_source(cost.seconds, options.size(1 << 30, 16 << 20))
        cost = Cost()
    if options.get("storage") == "store":
        source["url"] = f"http://127.0.0.1:{os.environ.get('STORE_PORT', '8765')}"
    pinned = torch.cuda.is_available() and options.get("pin_memory", True)
    return DataLoader(
        Pictures(batch * 10**5, side, cost, **source),
        batch_size=batch,
        num_workers=workers,
        pin_memory=pinned,
        persistent_workers=workers > 0,
        drop_last=True,
    )
