"""Convert a raw observation folder of an H200 trial into a gpuwhy recording.

    python -m tests.recordings.convert RAW.tar.gz-or-folder OUT.gpuwhy.gz

The raw form (one folder a job) was written before gpuwhy existed: ``nvml.jsonl`` at 10 Hz, the
driver's rings as read, py-spy captures without absolute time, and the process table. What a raw
folder cannot say is not invented: it has no UUID (each GPU is named after the folder), and where
no ``cpu_stat`` stands no CPU quota was set. ``truth*.jsonl`` is left out on purpose.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

from tests.recordings.raw.folder import MIB, Raw
from tests.recordings.raw.gpu import gpu_observations, thin_gpm
from tests.recordings.raw.processes import processes
from tests.recordings.raw.rings import rings, sm_shares
from tests.recordings.raw.stacks import Stacks

from gpuwhy.observe.recording import Recorder, header


def convert(folder: Path, out: Path) -> None:
    raw = Raw(folder)
    observations = list(thin_gpm(list(gpu_observations(raw))))
    observations += [*rings(raw), *sm_shares(raw), *processes(raw)]
    for pid in raw.ranks():
        observations += Stacks(raw, pid).observations()
    observations.sort(key=lambda o: o["t"])
    quota = any("cpu_stat" in row for row in raw.procs)
    gpus = [
        {"gpu": i, "uuid": raw.uuid(i), "name": "NVIDIA H200", "memory_total": 143771 * MIB}
        for i in range(raw.gpus)
    ]
    head = header(
        recorded_by="raw H200 trial, converted",
        host={"hostname": "recorded", "cpus": raw.procs[0]["p"][0]["aff"]},
        gpus=gpus,
        software={"driver": "580.159", "torch": "2.11", "python": "3.12"},
        limits={"cpu_quota": "set, in cpu.stat" if quota else "none"},
        created=raw.start,
    )
    with Recorder(out, head) as recorder:
        for observation in observations:
            recorder.write(observation)


def main(source: str, out: str) -> None:
    if Path(source).is_dir():
        convert(Path(source), Path(out))
        return
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(source) as archive:
        archive.extractall(scratch, filter="data")
        convert(next(p for p in Path(scratch).iterdir() if p.is_dir()), Path(out))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
