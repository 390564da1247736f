"""Keep what make_traces.py made: into tests/evidence/traces/h200, small enough to be committed.

    python bench/traces/keep.py OUT/traces.tar.gz [NAME ...]

Without names all traces, recordings and tables; a manifest holds versions and the jobs' own truth.
"""

from __future__ import annotations

import gzip
import json
import sys
import tarfile
import tempfile
from pathlib import Path

TARGET = Path(__file__).resolve().parents[2] / "tests" / "evidence" / "traces" / "h200"
PACKED = (".json.gz", ".gpuwhy.gz")
TABLES = ("kernels.csv", "kernels_raw.csv")
ABOUT = ("torch", "cuda", "python", "gpu", "gpus")


def keep(source: Path, names: list[str]) -> None:
    """Copy the files, and add their truth to the manifest that lies there."""
    manifest_file = TARGET / "manifest.json"
    kept = json.loads(manifest_file.read_text()) if manifest_file.exists() else {}
    told = json.loads((source / "manifest.json").read_text())
    kept |= {key: told[key] for key in ABOUT}
    truth = kept.setdefault("truth", {})
    for path in sorted(source.iterdir()):
        name = path.name.partition(".")[0]
        if names and name not in names:
            continue
        if path.name.endswith(PACKED):
            (TARGET / path.name).write_bytes(path.read_bytes())
        elif path.name in TABLES:
            packed = gzip.compress(path.read_bytes(), 9, mtime=0)
            (TARGET / f"{path.name}.gz").write_bytes(packed)
        elif path.name.endswith(".truth.json"):
            truth[name] = json.loads(path.read_text())
    manifest_file.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, tarfile.open(sys.argv[1]) as tar:
        tar.extractall(folder, filter="data")
        keep(Path(folder), sys.argv[2:])
    for path in sorted(TARGET.iterdir()):
        print(path.name, path.stat().st_size)
