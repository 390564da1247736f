"""Run a lot of planted jobs on this machine's GPUs, record each, and check gpuwhy's verdicts.

    python3 -m bench.h200.run_lot --lot single --seconds 40 --limit 570 --out "$OUT"

Slots run one after the other; a slot is one job on each GPU (or one on several). Each is started,
awaited until its steps are steady, recorded by the command under test, told to stop, and packed
into ``lot.tar`` before the lot goes on: what is done stays, whatever comes after. A slot that fails
is noted and the next one runs. Nothing is left running.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from pathlib import Path

from bench.h200.job import JOBS
from bench.h200.limits import own_cores
from bench.h200.lot import Lot, say
from bench.h200.packing import pack

HERE = Path(__file__).resolve().parent
GPUWHY = f"{shlex.quote(sys.executable)} -m gpuwhy"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    option = parser.add_argument
    option("variants", nargs="*", help="variants in order; default: those of --lot")
    option("--lot", help="a list of lots.json")
    option("--gpus", type=int, help="GPUs to use; default: all of the machine")
    option("--seconds", type=float, default=40, help="length of a recording")
    option("--settle", type=float, default=7, help="seconds of steps before it")
    option("--limit", type=float, default=560, help="seconds for the whole lot")
    option("--out", default=os.environ.get("OUT", "."), help="folder of the archive")
    option("--name", default="lot", help="name of the archive, without .tar")
    option("--live", default="", help="variants also diagnosed live, with commas between")
    option("--record", default=f"{GPUWHY} record {{file}} --for {{seconds}}s")
    option("--diagnose", default=f"{GPUWHY} diagnose --recording {{file}} --json")
    option("--diagnose-live", default=f"{GPUWHY} diagnose --for 20s --json")
    option("--dry-run", action="store_true", help="print the slots and end")
    return parser.parse_args(arguments)


def gpu_count() -> int:
    """GPUs of this machine, from the driver's folder; 1 where there is none (a CPU trial)."""
    folder = Path("/proc/driver/nvidia/gpus")
    devices = list(Path("/dev").glob("nvidia[0-9]*"))
    return len(list(folder.iterdir())) if folder.exists() else len(devices) or 1


def main() -> int:
    """Exit status 0 when every slot was recorded, 1 otherwise, 2 for bad usage."""
    options = parse()
    lots = json.loads((HERE / "lots.json").read_text())
    variants = json.loads((JOBS / "variants.json").read_text())
    exporter = str(HERE.parents[1] / "exporter")
    paths = [exporter, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.environ.setdefault("JOB_SCALE", "full")
    try:
        wanted = options.variants or lots[options.lot]
        plan = pack(wanted, variants, options.gpus or gpu_count(), own_cores())
    except (KeyError, ValueError) as error:
        say(f"run_lot: {error}")
        return 2
    if options.dry_run:
        for number, places in enumerate(plan):
            print(number, *(f"{p.variant}@{p.gpus} on {len(p.cores)} cores" for p in places))
        return 0
    lot = Lot(options, variants)
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, lambda *_: sys.exit(1))
    signal.alarm(int(options.limit) + 10)  # whatever hangs, nothing outlives the limit
    try:
        lot.run(plan)
    finally:
        lot.close()
    return 0 if lot.recorded() == len(plan) else 1


if __name__ == "__main__":
    sys.exit(main())
