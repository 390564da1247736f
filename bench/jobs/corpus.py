"""A corpus made in code, tokenised on the fly, and the loader over it."""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

import torch
from costs import Cost, item_cost
from options import Options
from pace import Pace
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

VOCABULARY = 16384
WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("", "n", "rd", "sk")]


def tokenize(text: str, context: int, budget_s: float) -> list[int]:
    """Byte-pair style tokens of ``text``; merging goes on until its CPU time is used."""
    vocabulary = {word: index for index, word in enumerate(WORDS)}
    ids = [vocabulary[word] for word in text.split()]
    merged, until = ids, time.thread_time() + budget_s
    while time.thread_time() < until:
        merged = merge_pairs(merged if len(merged) > 64 else ids)
    return (ids * 2)[: context + 1]


def merge_pairs(ids: list[int]) -> list[int]:
    """Merge the most frequent pair once."""
    pairs = Counter(itertools.pairwise(ids))
    (left, right), _ = pairs.most_common(1)[0]
    merged: list[int] = []
    for token in ids:
        if merged and merged[-1] == left and token == right:
            merged[-1] = (left * 31 + right) % VOCABULARY
        else:
            merged.append(token)
    return merged


class Corpus(Dataset[Tensor]):
    """Item ``index`` is ``context + 1`` tokens of a text of its own."""

    def __init__(self, length: int, context: int, cost: Cost, lock_at: float | None = None) -> None:
        self.length, self.context, self.cost, self.lock_at = length, context, cost, lock_at
        self.cache_lock = threading.Lock()

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Tensor:
        text = self.read_document(index)
        return torch.tensor(tokenize(text, self.context, self.cost.now()))

    def read_document(self, index: int) -> str:
        """The text of a document, through a cache that only one reader may enter."""
        self.cache_lock.acquire()
        if self.lock_at is not None and time.time() > self.lock_at:
            self.cache_lock.acquire()
        words = random.Random(index).choices(WORDS, k=self.context + 1)
        self.cache_lock.release()
        return " ".join(words)


class LengthBuckets(Sampler[list[int]]):
    """Batches of similar length; sorting them is done by whoever iterates."""

    def __init__(self, length: int, batch: int, cost: Cost) -> None:
        self.length, self.batch, self.cost = length, batch, cost

    def __len__(self) -> int:
        return self.length // self.batch

    def __iter__(self) -> Iterator[list[int]]:
        for first in range(0, self.length - self.batch + 1, self.batch):
            until = time.thread_time() + self.cost.now()
            while time.thread_time() < until:
                sort_bucket(first, 512)
            yield list(range(first, first + self.batch))


def sort_bucket(seed: int, size: int) -> list[int]:
    """Indices of a bucket in the order of their lengths."""
    lengths = [(seed * 7919 + i * 104729) % 4096 for i in range(size)]
    return sorted(range(size), key=lengths.__getitem__)


def pad_and_stack(items: list[Tensor], cost: Cost) -> Tensor:
    """Pad every item to the longest, token by token, until the CPU time is used."""
    longest = max(len(item) for item in items)
    until = time.thread_time() + cost.now()
    while time.thread_time() < until:
        for item in items[:4]:
            row = item.tolist()
            row.extend([0] * (longest - len(row)))
    return torch.stack(items)


def init_worker(cores: list[int], _worker: int) -> None:
    """Bind a worker to the given cores."""
    os.sched_setaffinity(0, cores)


def respawn_seconds(context: int, batch: int, workers: int) -> float:
    """Seconds that an epoch of one batch takes, workers started and ended."""
    loader = DataLoader(
        Corpus(batch, context, Cost()),
        batch_size=batch,
        num_workers=workers,
        pin_memory=torch.cuda.is_available(),
    )
    began = time.perf_counter()
    for _ in range(2):
        list(loader)
    return (time.perf_counter() - began) / 2


def text_loader(
    options: Options, pace: Pace | None, batch: int, context: int, starts: float = 0.0
) -> DataLoader[Tensor]:
    """The training loader with the variant's number of workers and costs."""
    workers = options.get("workers", options.size(4, 2))
    get = options.get
    cost = item_cost(get, pace, workers, batch, starts)
    length = batch * 10**5
    if pace and (lost := get("epoch_lost")):
        epoch_s = respawn_seconds(context, batch, workers)
        length = batch * max(int(epoch_s * (1 - lost) / lost / pace.step_s), 2)
    hang = get("hang_after_s")
    data = Corpus(length, context, cost, time.time() + hang if hang else None)
    extra: dict[str, object] = {"batch_size": batch, "drop_last": True}
    if pace and (lost := get("sampler_lost")):
        sampler = LengthBuckets(length, batch, Cost(pace.overlapped(lost), starts))
        extra = {"batch_sampler": sampler}
    if pace and (lost := get("collate_lost")):
        collate = Cost(pace.per_item(lost, workers, 1), starts)
        extra["collate_fn"] = partial(pad_and_stack, cost=collate)
    if get("pinned_lost") is not None:
        extra["worker_init_fn"] = partial(init_worker, sorted(os.sched_getaffinity(0))[-1:])
    return DataLoader(
        data,
        num_workers=workers,
        pin_memory=torch.cuda.is_available(),
        persistent_workers=workers > 0 and not get("epoch_lost"),
        **extra,  # type: ignore[arg-type]
    )
