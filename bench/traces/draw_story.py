"""docs/story.svg: a step of each act of the story, as long as it took, in its accounts.

PYTHONPATH=exporter python bench/traces/draw_story.py
"""

from __future__ import annotations

import re
from pathlib import Path

from names import STORY

import gpuwhy
from gpuwhy.evidence.compare_samples import Sample, load
from gpuwhy.ledger.accounts import ACCOUNTS

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = ROOT / "tests" / "evidence" / "traces" / "h200"
PICTURE = ROOT / "docs" / "story.svg"
PALETTE = Path(gpuwhy.__file__).parent / "expose" / "static" / "palette.css"

TITLES = ("A slow loader", "Its items cached", "The step as a CUDA graph")
WIDTH, LEFT, RIGHT, BAR, ROW = 760, 190, 80, 26, 44
LEAST = 0.01
"""Share of a step from which an account is drawn."""

STYLE = """text { font: 14px system-ui, sans-serif; fill: #1b1b1f; }
.small { font-size: 12px; fill: #50505a; }
@media (prefers-color-scheme: dark) { text { fill: #e6e6ea; } .small { fill: #b4b4be; } }"""


def colours() -> dict[str, str]:
    """account -> colour."""
    return dict(re.findall(r"--account-(\w+): (#\w+);", PALETTE.read_text()))


def step_seconds(sample: Sample) -> float:
    return float(sample.step_seconds.sum() / sample.steps.sum())


def shares(sample: Sample) -> dict[str, float]:
    """account -> its share, work first."""
    whole = sample.weights.sum()
    found = {account: float(v.sum() / whole) for account, v in sample.accounts.items()}
    order = ("compute", *(a for a in ACCOUNTS if a != "compute"))
    return {account: found[account] for account in order if found.get(account, 0.0) >= LEAST}


def bar(sample: Sample, title: str, top: int, scale: float, colour: dict[str, str]) -> str:
    """One act: pixels are ``scale`` a second."""
    length = step_seconds(sample)
    parts = [f"<text x='0' y='{top + 18}'>{title}</text>"]
    x = float(LEFT)
    for account, share in shares(sample).items():
        width = share * length * scale
        parts.append(
            f"<rect x='{x:.1f}' y='{top}' width='{width:.1f}' height='{BAR}' "
            f"fill='{colour[account]}'><title>{account} {share:.0%}</title></rect>"
        )
        x += width
    parts.append(f"<text x='{x + 8:.1f}' y='{top + 18}'>{1e3 * length:.3g} ms</text>")
    return "".join(parts)


def legend(accounts: list[str], top: int, colour: dict[str, str]) -> str:
    """Which colour is which account."""
    parts, x = [], LEFT
    for account in accounts:
        parts.append(f"<rect x='{x}' y='{top}' width='12' height='12' fill='{colour[account]}'/>")
        parts.append(f"<text class='small' x='{x + 18}' y='{top + 11}'>{account}</text>")
        x += 34 + 8 * len(account)
    return "".join(parts)


def draw() -> str:
    """The picture."""
    samples = [load(RECORDINGS / f"{name}.gpuwhy.gz") for name in STORY]
    scale = (WIDTH - LEFT - RIGHT) / max(map(step_seconds, samples))
    colour = colours()
    rows = [
        bar(sample, title, place * ROW, scale, colour)
        for place, (sample, title) in enumerate(zip(samples, TITLES, strict=True))
    ]
    seen = list(dict.fromkeys(account for sample in samples for account in shares(sample)))
    height = ROW * len(samples) + 20
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' role='img' "
        f"aria-label='One training step of each act, by account'><style>{STYLE}</style>"
        f"{''.join(rows)}{legend(seen, ROW * len(samples), colour)}</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(draw())
