"""Builds grafana/dashboards/*.json: ``python -m grafana.source.build [--check]``.

``--check`` writes nothing and exits with 1 if a file is not what would be written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grafana.source import fleet, input_pipeline, lockstep, monitor, one_gpu, why

FOLDER = Path(__file__).parent.parent / "dashboards"

DASHBOARDS: dict[str, Callable[[], dict[str, Any]]] = {
    "why": why.build,
    "one-gpu": one_gpu.build,
    "fleet": fleet.build,
    "lockstep": lockstep.build,
    "input-pipeline": input_pipeline.build,
    "monitor": monitor.build,
}
"""By name of the file."""


def text(name: str) -> str:
    """The JSON text of a dashboard."""
    return json.dumps(DASHBOARDS[name](), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check every file; the exit status."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m grafana.source.build [--check]\n")
        return 2
    stale = []
    for name in DASHBOARDS:
        file, built = FOLDER / f"{name}.json", text(name)
        if not file.is_file() or file.read_text(encoding="utf-8") != built:
            stale.append(file.name)
            if not arguments:
                file.write_text(built, encoding="utf-8")
    if arguments and stale:
        sys.stderr.write(f"not up to date: {', '.join(stale)}; run without --check\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
