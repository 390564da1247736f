"""Makes the rule files from ``alerting/thresholds.yml`` and the modules beside this one.

python -m alerting.source.build           # write them
python -m alerting.source.build --check   # exit 1 if they are not what would be written
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from alerting.source import canonical, causes, health, monitor, shapes, shares, thresholds, use
from alerting.source.model import Group, document
from alerting.source.thresholds import Thresholds

ROOT = Path(__file__).parents[2]
COMMAND = "python -m alerting.source.build"


def files(limits: Thresholds) -> dict[Path, str]:
    """The text of each rule file by its path below the root."""
    groups: dict[str, list[Group]] = {
        "prometheus/rules/recording.yml": [
            canonical.group(),
            shares.group(limits),
            shapes.records(limits),
        ],
        "alerting/rules/causes.yml": [causes.group(limits)],
        "alerting/rules/shapes.yml": [shapes.group(limits)],
        "alerting/rules/use.yml": [use.group(limits)],
        "alerting/rules/health.yml": [health.group(limits)],
        "alerting/rules/monitor.yml": [monitor.group(limits)],
    }
    links = {
        "runbooks": limits.runbook_base_url.rstrip("/"),
        "grafana": limits.grafana_base_url.rstrip("/"),
    }
    return {Path(path): document(COMMAND, of_file, links) for path, of_file in groups.items()}


def main(arguments: Sequence[str]) -> int:
    """Write or check; the exit status."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    checking = parser.parse_args(arguments).check
    try:
        made = files(thresholds.load())
    except thresholds.ThresholdError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    stale = [path for path, text in made.items() if _differs(ROOT / path, text)]
    for path in stale:
        if checking:
            sys.stderr.write(f"{path} is stale: run {COMMAND}\n")
        else:
            (ROOT / path).write_text(made[path], encoding="utf-8")
    return 1 if checking and stale else 0


def _differs(path: Path, text: str) -> bool:
    return not path.is_file() or path.read_text(encoding="utf-8") != text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
