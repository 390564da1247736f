"""A few steps of the kernels that ncu takes apart; what runs under NVIDIA's profilers."""

from __future__ import annotations

import torch

from jobs import JOBS

if __name__ == "__main__":
    job = JOBS["kernels"](torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    for number in range(10):
        torch.cuda.nvtx.range_push(f"step {number}")
        job.step(number)
        torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
