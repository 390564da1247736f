"""Colours: one for an account everywhere, told apart by people who see few of them.

The accounts' colours were searched for by their smallest distance (OKLab) under normal vision,
protanopia, deuteranopia and tritanopia; ``tests/grafana/test_palette.py`` holds that distance.
Blue is work (light blue: work at a lowered clock), warm colours are losses of the host, red is no
progress, greys are what is nobody's loss.
"""

from __future__ import annotations

ACCOUNTS = {
    "compute": "#394dff",
    "throttle": "#78caf0",
    "shared": "#cc47aa",
    "comm": "#8f10b9",
    "copy": "#1e8f44",
    "data": "#ffa930",
    "host": "#87371e",
    "launch": "#ffda0f",
    "quota": "#99ca93",
    "stalled": "#f23825",
    "startup": "#6191f2",
    "checkpoint": "#4c4a57",
    "evaluation": "#b399ad",
    "unknown": "#6a6362",
    "free": "#dbdde3",
}

CAUSES = {**ACCOUNTS, "none": ACCOUNTS["compute"]}
"""Answers of a verdict: an account's own colour; ``none`` is work."""

SIGNALS = {
    "busy": "#0072b2",
    "SM active": "#e69f00",
    "SM clock": "#009e73",
    "memory clock": "#56b4e9",
    "power": "#d55e00",
    "temperature": "#cc79a7",
    "memory controller": "#5fd6ab",
    "traffic": "#3e3cff",
}
"""Signals that lie over one another (after Okabe and Ito, with a yellow that shows on white)."""

LINES = tuple(SIGNALS.values())
"""For series that are neither account nor signal, in order."""

LIMIT = "#8c8c8c"
"""Limits and thresholds, always dashed."""

GOOD, WARN, BAD, NEUTRAL = (
    ACCOUNTS["compute"],
    ACCOUNTS["data"],
    ACCOUNTS["stalled"],
    ACCOUNTS["unknown"],
)
"""States; blue and red, never green and red."""

PHASES = {
    "data_wait": "#ffa930",
    "data_inline": "#d97f00",
    "data_sampler": "#ffc978",
    "data_worker_start": "#a86200",
    "h2d_copy": "#1e8f44",
    "d2h_copy": "#6fc08a",
    "forward": "#8fa0ff",
    "backward": "#394dff",
    "optimizer": "#1b2699",
    "grad_sync": "#8f10b9",
    "sync": "#c47a5e",
    "user": "#87371e",
    "framework": "#d9a58f",
    "logging": "#5e2716",
    "gc": "#b0503a",
    "checkpoint": "#4c4a57",
    "compile": "#6191f2",
    "import": "#c6bba9",
    "launcher": "#6a6362",
}
"""Phases of the host, in the hue of the account that they most often lead to."""
