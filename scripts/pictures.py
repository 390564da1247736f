"""The pictures of the documents, made again from the recordings.

    PYTHONPATH=exporter:. .venv/bin/python -m scripts.pictures [--draw PROGRAM]

The page is taken by a headless Chromium (``apt-get install chromium``). Dashboards are drawn by a
PROGRAM that is no part of the project, called as ``PROGRAM DASHBOARD.json FROM TO OUT.png`` (Unix
seconds) with ``PROM`` (the address of a Prometheus), ``VARS`` (``run=x&rank=0``), ``SCRAPE``,
``WIDTH`` and ``THEME`` in its environment: a script around a Grafana with its image renderer, or
around Grafana's front-end packages. Without one the dashboards' pictures stay as they are.
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scripts.stack.packages import ROOT
from tests.expose.browser import browser
from tests.expose.hosts import served, watch
from tests.expose.samples import Clock
from tests.grafana import recorded
from tests.grafana.prometheus import Prometheus, serving

from gpuwhy.expose.state import State
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.playback import play

FOLDER = ROOT / "docs/pictures"
RECORDINGS = ROOT / "tests/recordings"
PAGE_S = 900
"""What the page keeps."""
DAY = 1_796_043_600
"""A time on the day on which the first jobs were recorded, Unix s."""
LARGEST = 200_000
"""Bytes of a picture: a README must open quickly."""


@dataclass(frozen=True)
class Page:
    """A picture of the page on a recording. ``whole``: played again and again with all its GPUs;
    else the seconds of its first GPU laid end to end, so that no loop's begin shows as a gap."""

    recording: str
    width: int
    height: int
    whole: bool = False


@dataclass(frozen=True)
class Dashboard:
    """A picture of a dashboard: its variables, and how much of it from the top."""

    file: str
    variables: str
    height: int


PAGES = {
    "page-data": Page("data_slow", 1000, 1330),
    "page-straggler": Page("ddp_straggler", 1000, 780, whole=True),
}
DASHBOARDS = {
    "why": Dashboard("why.json", "host=recorded&run=data_slow", 825),
    "lockstep": Dashboard("lockstep.json", "host=recorded&run=ddp_straggler", 600),
}
FIVE_MINUTES = """(() => {
    const span = document.getElementById("span");
    span.value = "300";
    span.dispatchEvent(new Event("change", {bubbles: true}));
    return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
})()"""
"""A recording is 20 s long: over 15 minutes the curves look striped."""


def main(arguments: Sequence[str]) -> int:
    """The command; its exit status: 0 made, 1 a picture is too large or was not drawn."""
    parser = argparse.ArgumentParser(prog="python -m scripts.pictures", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--draw", type=Path, metavar="PROGRAM", help="draws a dashboard")
    draw: Path | None = parser.parse_args(arguments).draw
    FOLDER.mkdir(exist_ok=True)
    pages()
    if draw is not None:
        dashboards(draw.resolve())
    large = [path.name for path in FOLDER.glob("*.png") if path.stat().st_size > LARGEST]
    for name in large:
        sys.stderr.write(f"{name} is larger than {LARGEST} bytes: show less of it\n")
    return 1 if large else 0


def pages() -> None:
    """Take the page's pictures."""
    with browser() as chromium:
        for name, page in PAGES.items():
            state = watched([page.recording]) if page.whole else laid(page.recording)
            with served(state) as address:
                tab = chromium.tab()
                tab.look(page.width, page.height)
                tab.go(address)
                tab.wait("document.querySelectorAll('#strips canvas').length >= 5")
                tab.run(FIVE_MINUTES)
                tab.picture(FOLDER / f"{name}.png")
                tab.close()


def laid(name: str) -> State:
    """An exporter that has watched one GPU for as long as the page keeps."""
    state = State(recorded=True, clock=Clock(DAY - PAGE_S))
    watch(state, [name], PAGE_S, change=lambda one: replace(one, run=name))
    return state


def watched(names: Sequence[str]) -> State:
    """An exporter that has seen these recordings, looping, for as long as the page keeps."""
    now = 0.0
    state = State(recorded=True, clock=lambda: now)
    batch: list[Observation] = []
    started = 0.0
    for observation in played(names):
        started = started or float(observation["t"])
        batch.append(observation)
        if float(observation["t"]) >= now + 1.0:
            now = float(observation["t"])
            state.feed(batch)
            batch = []
        if now - started > PAGE_S:
            break
    return state


def played(names: Sequence[str]) -> Iterator[Observation]:
    """The recordings as fast as possible, without what reaches back before their beginning."""
    begun = False
    paths = [RECORDINGS / f"{name}.gpuwhy.gz" for name in names]
    for observation in play(paths, None, loop=True):
        begun = begun or observation["kind"] not in ("ring", "stack")
        if begun:
            yield observation


def dashboards(draw: Path) -> None:
    """Have the dashboards drawn, on a real Prometheus with what the recordings give."""
    runs = ("data_slow", "ddp_straggler", "healthy", "cpu_quota")
    with tempfile.TemporaryDirectory() as folder:
        lines = recorded.openmetrics(recorded.played(runs, "recorded"))
        start, end = recorded.END - recorded.SECONDS, recorded.END
        with serving(Path(folder), lines, start, end) as prometheus:
            for name, dashboard in DASHBOARDS.items():
                _draw(draw, prometheus, dashboard, FOLDER / f"{name}.png")


def _draw(draw: Path, prometheus: Prometheus, dashboard: Dashboard, path: Path) -> None:
    environment = {
        "PROM": prometheus.url,
        "VARS": dashboard.variables,
        "SCRAPE": "5s",
        "WIDTH": "1400",
        "THEME": "light",
    }
    source = ROOT / "grafana/dashboards" / dashboard.file
    span = [str(recorded.END - recorded.SECONDS + 60), str(recorded.END)]
    subprocess.run(
        [str(draw), str(source), *span, str(path)], env=os.environ | environment, check=True
    )
    path.write_bytes(top(path.read_bytes(), dashboard.height))


def top(png: bytes, height: int) -> bytes:
    """The first lines of an 8-bit PNG that is not interlaced, as browsers write it."""
    chunks = list(_chunks(png))
    width, old, depth, colour, *_, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    channels = {2: 3, 6: 4}.get(colour)
    if depth != 8 or interlaced or channels is None:
        raise ValueError("no plain PNG of 8 bits a channel")
    lines = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    height = min(height, old)
    kept = lines[: height * (1 + channels * width)]
    head = struct.pack(">II", width, height) + chunks[0][1][8:]
    made = ((b"IHDR", head), (b"IDAT", zlib.compress(kept, 9)), (b"IEND", b""))
    return png[:8] + b"".join(_chunk(kind, data) for kind, data in made)


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += 12 + length


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
