"""Two ranks with DDP; the second sleeps before each backward, so the first waits for it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

from jobs import large, large_layers

LATE_S = 0.05

Profile = Callable[..., None]


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def run(profile: Profile, out: str, cuda: bool) -> None:
    """Start both ranks and wait; each writes its own trace."""
    mp.spawn(_rank, args=(free_port(), profile, out, cuda), nprocs=2)


def _rank(rank: int, port: int, profile: Profile, out: str, cuda: bool) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    options: dict[str, Any] = {"rank": rank, "world_size": 2}
    dist.init_process_group("nccl" if cuda else "gloo", **options)
    device = torch.device("cuda", rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    model = DistributedDataParallel(large_layers(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    batch = torch.randn(large(device) // 2, large(device), device=device)

    def train_step(number: int) -> None:
        loss = model(batch).square().mean()
        if rank == 1:
            time.sleep(LATE_S)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    profile(train_step, f"{out}/two_ranks-rank{rank}.json", cuda, stacks=False)
    dist.destroy_process_group()
