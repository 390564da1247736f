"""What the exporter costs itself beside eight GPUs, eight ranks and 64 workers.

    python -m bench.own_cost [--seconds 120] [--out own_cost.json] [--write docs/cost.md]

``gpuwhy serve`` at its defaults, py-spy included, scraped as the shipped Prometheus does; then a
while of load: parallel scrapes, the page, the API, readers that are slow and readers that go away.
CPU is that of the whole process tree, what has ended included. Needs a C compiler and PyTorch.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.cost_report import machine
from bench.own_cost_exporter import Exporter
from bench.own_cost_host import Host, HostError
from bench.own_cost_readers import Crowd, Scraper, series

SCRAPE_S = 5.0
PSS_S = 5.0


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="bench.own_cost", description=__doc__.splitlines()[0])
    option = parser.add_argument
    option("--gpus", type=int, default=8, help="each with one rank (default: %(default)s)")
    option("--workers", type=int, default=8, help="of each rank (default: %(default)s)")
    option("--settle", type=float, default=75, help="seconds before the measurement begins")
    option("--seconds", type=float, default=120, help="of the measurement (default: %(default)s)")
    option("--load", type=float, default=30, help="seconds under load after it")
    option("--out", type=Path, help="file for the result as JSON")
    return parser.parse_args(arguments)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Start everything, look at it for a while, end everything."""
    with Host(folder, options.gpus, options.workers) as host, Exporter(host) as exporter:
        exporter.wait(options.gpus)
        with Scraper(exporter.url, SCRAPE_S) as calm:
            exporter.pass_time(options.settle)
            before = exporter.usage()
            sizes = []
            while time.monotonic() < before["t"] + options.seconds:
                exporter.pass_time(PSS_S)
                sizes.append(exporter.pss())
            after = exporter.usage()
        with Scraper(exporter.url, 1.0) as pressed, Crowd(exporter.url):
            exporter.pass_time(options.load)
        return {
            "kind": "own_cost",
            "machine": machine(),
            "gpus": options.gpus,
            "workers": options.gpus * options.workers,
            "seconds": options.seconds,
            "cores": shares(before, after),
            "sources": shares(before, after, "sources"),
            "stacks_limit": after["limits"].get("stacks"),  # lower while the host is short of CPU
            "pss_mb": {
                "median": sorted(sizes, key=lambda size: size["all"])[len(sizes) // 2],
                "most": max(sizes, key=lambda size: size["all"]),
            },
            "series": series(exporter.url),
            "scrape": told(calm.took),
            "scrape_under_load": told(pressed.took),
        }


def shares(before: dict[str, Any], after: dict[str, Any], of: str = "cpu_s") -> dict[str, float]:
    """Cores used by each part of the process tree, or by each source as it says itself."""
    seconds = after["t"] - before["t"]
    return {
        part: round((after[of][part] - before[of].get(part, 0.0)) / seconds, 4)
        for part in after[of]
    }


def told(took: list[float]) -> dict[str, float]:
    """Median, 99th percentile and the longest, in milliseconds."""
    ordered = sorted(took)
    return {
        "scrapes": len(ordered),
        "median_ms": round(1e3 * statistics.median(ordered), 1),
        "p99_ms": round(1e3 * ordered[int(0.99 * (len(ordered) - 1))], 1),
        "longest_ms": round(1e3 * ordered[-1], 1),
    }


def main() -> int:
    options = parse()
    try:
        with tempfile.TemporaryDirectory(prefix="gpuwhy-own-cost-") as folder:
            result = measure(options, Path(folder))
    except HostError as error:
        sys.stderr.write(f"bench.own_cost: {error}\n")
        return 1
    text = json.dumps(result, indent=1)
    sys.stdout.write(text + "\n")
    if options.out:
        options.out.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
