"""Serve text from a small GPT: requests come in bursts, each is answered token by token."""

from __future__ import annotations

import itertools
import time

import torch
from clock import Clock
from corpus import VOCABULARY
from options import load
from transformer import GPT


@torch.inference_mode()
def answer(model: torch.nn.Module, prompts: torch.Tensor, tokens: int) -> torch.Tensor:
    """Append ``tokens`` greedy tokens to each prompt."""
    text = prompts
    for _ in range(tokens):
        logits = model(text)
        text = torch.cat([text[:, 1:], logits[:, -1:].argmax(-1)], dim=1)
    return text


def main() -> None:
    """Answer requests until told to stop; ``duty`` is the share of time with a request."""
    options = load()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clock = Clock(options, device)
    context, batch = options.size(512, 32), options.size(options.get("batch", 16), 2)
    with device:
        model = GPT(VOCABULARY, context, options.size(1024, 64), options.size(12, 2), 16)
    model = model.to(torch.bfloat16).eval()
    prompts = torch.randint(VOCABULARY, (batch, context), device=device)
    duty = options.get("duty", 0.5)
    clock.header(None)
    clock.start()
    for request in itertools.count():
        began = time.time()
        answer(model, prompts, 16).tolist()
        clock.lap("forward")
        time.sleep((time.time() - began) * (1 - duty) / duty)
        clock.lap("idle")
        if clock.step(request):
            return


if __name__ == "__main__":
    main()
