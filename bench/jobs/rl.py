"""Train a policy by acting in a simulated world between updates."""

from __future__ import annotations

import itertools
import math
import time

import torch
from clock import Clock
from options import load
from pace import measure
from torch import Tensor, nn


class World:
    """Pendulums, stepped one by one in Python."""

    def __init__(self, count: int) -> None:
        self.angles, self.speeds = [0.1 * i for i in range(count)], [0.0] * count

    def advance(self, actions: list[float], budget_s: float) -> list[list[float]]:
        """Integrate with as many sub-steps as the CPU time allows; returns observations."""
        until = time.thread_time() + budget_s
        while True:
            for i, action in enumerate(actions):
                self.speeds[i] += 0.001 * (action - math.sin(self.angles[i]))
                self.angles[i] += 0.001 * self.speeds[i]
            if time.thread_time() >= until:
                break
        return [[math.sin(a), math.cos(a), s] for a, s in zip(self.angles, self.speeds)]  # noqa: B905


def policy(hidden: int) -> nn.Module:
    """Observation to action."""
    layers: list[nn.Module] = [nn.Linear(3, hidden), nn.Tanh()]
    for _ in range(4):
        layers += [nn.Linear(hidden, hidden), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(hidden, 1))


def main() -> None:
    """Run the variant."""
    options = load()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clock = Clock(options, device)
    model = policy(options.size(4096, 64)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=device.type == "cuda")
    replay = torch.randn(options.size(16384, 256), 3, device=device)

    def loss_of() -> Tensor:
        with torch.autocast(device.type, torch.bfloat16):
            return model(replay).float().square().mean()

    def train_step() -> None:
        loss_of().backward()
        optimizer.step()
        optimizer.zero_grad()

    pace = measure(train_step, torch.cuda.synchronize if device.type == "cuda" else int)
    clock.header(pace)
    world, observations = World(64), [[0.0, 1.0, 0.0]] * 64
    simulate_s = pace.serial(options.get("simulate_lost", 0.7))
    clock.start()
    for step in itertools.count():
        with torch.no_grad():
            seen = torch.tensor(observations, device=device)
            actions = model(seen)[:, 0].tolist()
        clock.lap("sync")
        observations = world.advance(actions, simulate_s)
        clock.lap("user")
        replay[: len(observations)] = torch.tensor(observations, device=device)
        clock.lap("h2d_copy")
        loss = loss_of()
        clock.lap("forward")
        loss.backward()
        clock.lap("backward")
        optimizer.step()
        optimizer.zero_grad()
        clock.lap("optimizer")
        if clock.step(step):
            return


if __name__ == "__main__":
    main()
