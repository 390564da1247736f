"""Fuzz every reader, keep the fewest inputs that reach as much, and write down what was done.

    pip install atheris==3.0.0
    PYTHONPATH=exporter:. python bench/fuzz/campaign.py FOLDER [--runs 1000000] [READER ...]

FOLDER/READER is the corpus in work, begun with tests/evidence/fuzz/corpus/READER.zip. With
``--runs 0`` a corpus is only made smaller and kept. Results go to bench/fuzz/results.json.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[1] / "tests" / "evidence" / "fuzz" / "corpus"
RESULTS = HERE / "results.json"

LONGEST = {"events": 2500, "kineto": 6500, "any": 8000}
"""Bytes of an input, where parsing takes long; else 16 kB."""
RESTART = 250_000
"""Inputs after which the process is begun anew: instrumented code gathers memory."""
_COVERED = re.compile(r"cov: (\d+) ft: (\d+)")


def fuzz(name: str, folder: Path, *options: str) -> str:
    """Run ``fuzz.py``; its log. Raises SystemExit with the log's end where an input fails."""
    command = [sys.executable, str(HERE / "fuzz.py"), name, *options]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=folder, check=False
    )
    log = done.stdout + done.stderr
    if done.returncode:
        raise SystemExit(f"{name}: status {done.returncode}\n{log[-3000:]}")
    return log


def campaign(name: str, folder: Path, runs: int) -> dict[str, float]:
    """``runs`` inputs for one reader; what they reached."""
    corpus = folder / name
    if not corpus.is_dir():
        corpus.mkdir(parents=True)
        with zipfile.ZipFile(KEPT / f"{name}.zip") as packed:
            packed.extractall(corpus)
    begun, left = time.monotonic(), runs
    while left > 0:
        part = min(left, RESTART)
        length = LONGEST.get(name, 16_000)
        fuzz(name, folder, f"-runs={part}", f"-max_len={length}", "-rss_limit_mb=4000", str(corpus))
        left -= part
    seconds = time.monotonic() - begun
    log = keep(name, folder)
    branches, features = _COVERED.findall(log)[-1]
    with zipfile.ZipFile(KEPT / f"{name}.zip") as packed:
        count = len(packed.namelist())
    return {
        "inputs": runs,
        "seconds": round(seconds),
        "branches": int(branches),
        "features": int(features),
        "corpus": count,
    }


def keep(name: str, folder: Path) -> str:
    """Pack the fewest inputs that reach what the corpus reaches; the log of running just these."""
    small = folder / f"{name}.small"
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir()
    fuzz(name, folder, "-merge=1", str(small), str(folder / name))
    KEPT.mkdir(exist_ok=True)
    with zipfile.ZipFile(
        KEPT / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9
    ) as packed:
        for path in sorted(small.iterdir()):
            packed.writestr(zipfile.ZipInfo(path.name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return fuzz(name, folder, "-runs=0", str(small))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--runs", type=int, default=1_000_000)
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.readers or sorted(path.stem for path in KEPT.glob("*.zip")):
        made = campaign(name, options.folder.resolve(), options.runs)
        old = results.get(name, {})
        for total in ("inputs", "seconds"):  # of all campaigns with this corpus
            made[total] += old.get(total, 0)
        results[name] = made
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        print(name, made, flush=True)


if __name__ == "__main__":
    main()
