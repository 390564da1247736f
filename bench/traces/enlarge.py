"""Make a large Kineto trace of a small one: its events again and again, each time later.

Times, correlations, operator ids and step numbers go on from copy to copy, so that the large file
reads as one long recording. Usage: enlarge.py SMALL.json.gz LARGE.json BYTES
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

IDS = ("correlation", "External id", "external id", "Record function id", "Ev Idx")
PAUSE_US = 100.0
STEP = re.compile(r"(ProfilerStep#)(\d+)")


def load(path: Path) -> dict[str, Any]:
    """The whole small file."""
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def moved(event: dict[str, Any], shift: float, ids: int, steps: int) -> dict[str, Any]:
    """The event ``shift`` us later, with fresh ids."""
    made = {**event, "ts": event["ts"] + shift}
    if isinstance(event.get("id"), int):
        made["id"] = event["id"] + ids
    if "args" in event:
        args = event["args"]
        made["args"] = args | {
            key: args[key] + ids for key in IDS if isinstance(args.get(key), int)
        }
    if found := STEP.match(str(event.get("name"))):
        made["name"] = f"{found[1]}{int(found[2]) + steps}"
    return made


def enlarge(small: Path, large: Path, size: int) -> int:
    """Write ``large`` of about ``size`` bytes; the number of events in it."""
    trace = load(small)
    events = [event for event in trace.pop("traceEvents") if "ts" in event]
    body = [event for event in events if event["ph"] in "Xsfi"]
    first = min(event["ts"] for event in body)
    span = max(event["ts"] + event.get("dur", 0) for event in body) - first + PAUSE_US
    ids = 1 + max(event["args"].get("correlation", 0) for event in body if "args" in event)
    steps = sum(bool(STEP.match(str(event.get("name")))) for event in body)
    count = 0
    with large.open("w") as out:
        out.write(json.dumps(trace)[:-1] + ',\n"traceEvents": [\n')
        copy = 0
        while out.tell() < size:
            lines = [json.dumps(moved(e, copy * span, copy * ids, copy * steps)) for e in body]
            out.write((",\n" if copy else "") + ",\n".join(lines))
            count += len(lines)
            copy += 1
        out.write("\n]}\n")
    return count


if __name__ == "__main__":
    print(enlarge(Path(sys.argv[1]), Path(sys.argv[2]), int(float(sys.argv[3]))), "events")
