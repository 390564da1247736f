"""Two ranks with DDP; the second sleeps before each backward, so the first waits for it.

    python two_ranks.py FOLDER

With two GPUs over NCCL. With one, both ranks share it and meet over gloo: the wait is then on the
host and not in a kernel, which a trace has to tell as well.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from play import profile, timed, trim
from torch.nn.parallel import DistributedDataParallel

from jobs import large, large_layers

LATE_S = 0.05
LATE_RANK = 1


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _rank(rank: int, port: int, folder: str) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # a host's own name need not resolve
    gpus = torch.cuda.device_count()
    device = torch.device("cuda", rank % gpus) if gpus else torch.device("cpu")
    if not gpus:
        torch.set_num_threads(1)
    else:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpus > 1 else "gloo", rank=rank, world_size=2)
    width = large(device) // (1 if gpus > 1 else 4)  # gloo goes by way of the host: send it less
    model = DistributedDataParallel(large_layers(device, width=width))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    batch = torch.randn(2 * width, width, device=device)

    def train_step(number: int) -> None:
        loss = model(batch).square().mean()
        if rank == LATE_RANK:
            time.sleep(LATE_S)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    made: dict[str, Any] = {"step_seconds": timed(train_step, bool(gpus)), "late_s": LATE_S}
    path = Path(folder) / f"{name_of(gpus)}-rank{rank}.json"
    profile(train_step, path, bool(gpus), stacks=False)
    trim(path)
    path.with_suffix(".truth.json").write_text(json.dumps(made, indent=1))
    dist.destroy_process_group()


def name_of(gpus: int) -> str:
    """Before ``-rankN``: by how the ranks meet."""
    return "two_ranks" if gpus > 1 else "two_ranks_gloo"


if __name__ == "__main__":
    mp.spawn(_rank, args=(free_port(), sys.argv[1]), nprocs=2)
