"""docs/live.md: what ``gpuwhy diagnose --for 20s --json`` answered beside the running jobs.

    python -m bench.live [--write docs/live.md]

``bench/live/NAME.json`` is the answer as it was printed on the machine, before the job had ended;
the truth is what the jobs wrote, over the window that the answer names.
"""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.accuracy_jobs import RECORDINGS, held_back
from bench.accuracy_page import table

from bench import truth

LIVE = Path(__file__).resolve().parent / "live"

HEAD = """# Live on an H200

Made by `python -m bench.live --write docs/live.md` from `bench/live/`: the answers of
`gpuwhy diagnose --for 20s --json`, attached to jobs that ran, on machines with two H200 (driver
580.159, torch 2.11, Python 3.12). The lost share is the job's own account over the same window.
Each job was recorded with `gpuwhy record` just before; the recordings are in `bench/recordings/`.
"Not tuned on" marks jobs of the held-back part (`bench/heldout.txt`).

"""


def seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def rows() -> list[list[str]]:
    listed, looked = held_back()
    out = []
    for path in sorted(LIVE.glob("*.json")):
        kept = json.loads(path.read_text())
        window = kept["verdict"]["window"]
        t0, t1 = seconds(window["start"]), seconds(window["end"])
        for variant in path.stem.split("-"):
            for rank in truth.load(RECORDINGS / f"{variant}.truth.jsonl.gz").values():
                header = rank.header
                fresh = any(header[kind] in names for kind, names in listed.items())
                answer = _of(kept["verdict"], header["pid"])
                lost = truth.lost(rank, t0, t1) if rank.causes else None
                out.append(
                    [
                        variant,
                        str(header["framework"]),
                        "+".join(rank.causes) or "healthy",
                        "" if lost is None else f"{lost:.0%}",
                        _words(answer),
                        "yes" if fresh and variant not in looked else "",
                        f"{kept['answered'] - kept['asked']:.0f} s",
                    ]
                )
    return out


def _of(verdict: dict[str, Any], pid: int) -> dict[str, Any]:
    return next((g for g in verdict["gpus"] if g.get("pid") == pid), {"cause": "no answer"})


def _words(answer: dict[str, Any]) -> str:
    parts = []
    for cause in answer.get("causes", []):
        note = ", information" if cause.get("information") else ""
        where = f", `{cause['function']['name']}`" if cause.get("function") else ""
        parts.append(f"{cause['cause']} {cause['lost_ratio']:.0%}{where}{note}")
    return "; ".join(parts) or str(answer["cause"])


def page() -> str:
    heads = ["job", "framework", "planted", "lost", "answered", "not tuned on", "command took"]
    note = (
        "\n`c58` was answered wrongly: a jitted step leaves no Python frame, so it was held to "
        "be starting. The answer stands as it was given; the rule has been mended since, and the "
        "job no longer counts as held back.\n"
    )
    return HEAD + table(heads, rows()) + note


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    print(page())
    if options.write:
        options.write.write_text(page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
