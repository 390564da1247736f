"""Train a recurrent tagger: cell by cell in Python, or as one fused call."""

from __future__ import annotations

import itertools

import torch
from clock import Clock
from options import load
from pace import measure
from reporting import build_report
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

TAGS = 32


class Tagger(nn.Module):
    """A recurrent layer over (length, batch, width) and a tag for each place."""

    def __init__(self, width: int, layers: int, cell_by_cell: bool) -> None:
        super().__init__()
        self.width = width
        self.cell = nn.LSTMCell(width, width) if cell_by_cell else None
        self.fused = None if cell_by_cell else nn.LSTM(width, width, layers)
        self.tags = nn.Linear(width, TAGS)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the tags."""
        return self.tags(self.fused(x)[0] if self.fused else self.unroll(x))

    def unroll(self, x: Tensor) -> Tensor:
        """Step through the sequence."""
        state = (x.new_zeros(x.shape[1], self.width), x.new_zeros(x.shape[1], self.width))
        outputs = []
        for item in x:
            state = self.cell(item, state)
            outputs.append(state[0])
        return torch.stack(outputs)


def main() -> None:
    """Run the variant."""
    options = load()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clock = Clock(options, device)
    length, width = options.size(options.get("length", 256), 16), options.size(512, 32)
    batch = options.size(options.get("batch", 64), 4)
    model = Tagger(width, options.get("layers", 1), options.get("cell_by_cell", False)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs = torch.randn(length, batch, width, device=device)
    tags = torch.randint(TAGS, (length * batch,), device=device)

    def forward() -> Tensor:
        return F.cross_entropy(model(inputs).flatten(0, 1), tags)

    def train_step() -> None:
        forward().backward()
        optimizer.step()
        optimizer.zero_grad()

    pace = measure(train_step, torch.cuda.synchronize if device.type == "cuda" else int, 10, 4)
    clock.header(pace)
    report = build_report(options, pace, clock, clock.start())
    for step in itertools.count():
        loss = forward()
        clock.lap("forward")
        loss.backward()
        clock.lap("backward")
        optimizer.step()
        optimizer.zero_grad()
        clock.lap("optimizer")
        report(step, loss)
        if clock.step(step):
            return


if __name__ == "__main__":
    main()
