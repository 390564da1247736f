"""Keep what a lot brought back: recordings and the jobs' truth, without the machine's own paths.

    python -m bench.keep LOT.tar...

Each slot becomes ``bench/recordings/NAME.gpuwhy.gz`` and, for each job in it,
``VARIANT.truth.jsonl.gz``. Only paths and names of the lent machine are replaced; every figure
stays as it was observed.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from gpuwhy.observe.recording import Recorder, read

HERE = Path(__file__).resolve().parent
KEPT = HERE / "recordings"
LARGEST = 300_000
"""Bytes of one recording."""
PLACES = (
    (re.compile(r"^/.*/bench/jobs/"), "/job/"),
    (re.compile(r"^/process_api/.*"), "/job"),
    (re.compile(r"^/opt/torch/\.venv/"), "/venv/"),
)


def neutral(value: Any) -> Any:
    """The same value with the lent machine's paths replaced."""
    if isinstance(value, str):
        for pattern, replacement in PLACES:
            value = pattern.sub(replacement, value)
        return value
    if isinstance(value, list):
        return [neutral(item) for item in value]
    if isinstance(value, dict):
        return {key: neutral(item) for key, item in value.items()}
    return value


def keep_recording(source: Path, target: Path) -> None:
    """Rewrite a recording with neutral paths; raises ValueError where it is too large."""
    header, observations = read(source)
    with Recorder(target, {**header, "host": {**header["host"], "hostname": "h200"}}) as recorder:
        for observation in observations:
            recorder.write(neutral(observation))
    if target.stat().st_size > LARGEST:
        raise ValueError(f"{target.name}: {target.stat().st_size} bytes, at most {LARGEST}")


def keep_truth(source: Path, target: Path) -> None:
    """Rewrite a truth file, the same bytes for the same lines."""
    lines = gzip.decompress(source.read_bytes()).decode().splitlines()
    kept = "".join(json.dumps(neutral(json.loads(line))) + "\n" for line in lines if line.strip())
    target.write_bytes(gzip.compress(kept.encode(), mtime=0))


def keep(lot: Path) -> list[str]:
    """Keep every slot of a lot; the names of what was kept."""
    names = []
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(lot) as archive:
        archive.extractall(scratch, filter="data")
        for recording in sorted(Path(scratch).rglob("*.gpuwhy.gz")):
            keep_recording(recording, KEPT / recording.name)
            names.append(recording.name)
        for truth in sorted(Path(scratch).rglob("*.truth.jsonl.gz")):
            keep_truth(truth, KEPT / truth.name)
            names.append(truth.name)
    return names


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    for path in sys.argv[1:]:
        print(*keep(Path(path)), sep="\n")
