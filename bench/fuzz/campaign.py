"""Fuzz every reader, keep the fewest inputs that reach as much, and write down what was done.

    pip install atheris==3.0.0
    PYTHONPATH=exporter:. python bench/fuzz/campaign.py FOLDER [--runs 1000000] [READER ...]

FOLDER/READER is the corpus in work, begun with tests/evidence/fuzz/corpus/READER.zip. With
``--runs 0`` a corpus is only made smaller and kept. Results go to bench/fuzz/results.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from reach import fewest
from tests.evidence.fuzz.targets import TARGETS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / "tests" / "evidence" / "fuzz" / "corpus"
RESULTS = HERE / "results.json"

LONGEST = {"events": 2500, "kineto": 6500, "any": 8000}
"""Bytes of an input, where parsing takes long; else 16 kB."""
RESTART = 250_000
"""Inputs after which the process is begun anew: instrumented code gathers memory."""
LARGEST = 50_000
"""Bytes of an input that is kept."""


def fuzz(name: str, folder: Path, *options: str) -> str:
    """Run ``fuzz.py``; its log. Raises SystemExit with the log's end where an input fails."""
    command = [sys.executable, str(HERE / "fuzz.py"), name, *options]
    places = [str(ROOT), str(ROOT / "exporter"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=folder, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
    )  # fmt: skip
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
    kept, reached = keep(name, corpus)
    return {"guided_inputs": runs, "seconds": round(seconds), "jumps": reached, "corpus": kept}


def keep(name: str, corpus: Path) -> tuple[int, int]:
    """Pack the fewest inputs that reach what the corpus reaches; how many, and how much it is."""
    known = [path.read_bytes() for path in corpus.iterdir()]
    kept, reached = fewest(TARGETS[name], [data for data in known if len(data) <= LARGEST])
    KEPT.mkdir(exist_ok=True)
    with zipfile.ZipFile(KEPT / f"{name}.zip", "w", compresslevel=9) as packed:
        for data in kept:
            entry = zipfile.ZipInfo(hashlib.sha256(data).hexdigest()[:16])
            packed.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return len(kept), reached


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
        for total in ("guided_inputs", "seconds"):  # of all campaigns with this corpus
            made[total] += old.get(total, 0)
        results[name] = old | made
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        print(name, made, flush=True)


if __name__ == "__main__":
    main()
