"""Convert a raw observation folder of an H200 trial into a gpuwhy recording.

    python tests/recordings/convert.py RAW.tar.gz-or-folder OUT.gpuwhy.gz

The raw form (one folder a job) was written before gpuwhy existed: ``nvml.jsonl`` at 10 Hz, the
driver's rings as read, py-spy captures without absolute time, and the process table. What a raw
folder cannot say is not invented: it has no UUID (each GPU is named after the folder), and where
no ``cpu_stat`` stands no CPU quota was set. ``truth*.jsonl`` is left out on purpose.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpuwhy.observe.observation import Observation
from gpuwhy.observe.recording import Recorder, header

MIB = 1024 * 1024
CAPTURE_OFFSETS = {"dump1": 1.0, "stacks": 2.0, "timeline": 9.0, "dump2": 15.0, "speed": 16.5}
"""Seconds after the first row of nvml.jsonl at which each capture was started."""
RAW_SECONDS = 6.0
SM_BUFFER_SECONDS = 14.2
"""What the driver averages per-process utilisation over when asked with time stamp 0."""
RINGS = {"ring_util": "utilization", "ring_mem": "memory_utilization", "ring_power": "power"}
RING_STEP = {"utilization": 0.2, "memory_utilization": 0.2, "power": 0.02}
RING_SCALE = {"utilization": 0.01, "memory_utilization": 0.01, "power": 0.001}
GPM_NAMES = {
    "graphics_util": ("graphics", 0.01),
    "sm_util": ("sm", 0.01),
    "sm_occupancy": ("occupancy", 0.01),
    "any_tensor": ("tensor", 0.01),
    "dram_bw": ("dram", 0.01),
    "pcie_tx": ("pcie_tx", MIB),
    "pcie_rx": ("pcie_rx", MIB),
    "nvlink_tx": ("nvlink_tx", MIB),
    "nvlink_rx": ("nvlink_rx", MIB),
}


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


class Raw:
    """One raw folder, read lazily."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        self.nvml = json_lines(folder / "nvml.jsonl")
        self.procs = json_lines(folder / "procs.jsonl")
        self.start = float(self.nvml[0]["t"])
        self.gpus = len(self.nvml[0]["gpus"])

    def uuid(self, gpu: int) -> str:
        return f"recorded-{self.name}-{gpu}"

    def ranks(self) -> dict[int, list[int]]:
        """PID of each GPU process -> the GPUs that list it."""
        held: dict[int, set[int]] = {}
        for row in self.nvml:
            for gpu, slow in enumerate(row.get("slow") or []):
                for pid, _ in slow.get("procs") or []:
                    held.setdefault(pid, set()).add(gpu)
        return {pid: sorted(gpus) for pid, gpus in held.items()}


def gpu_observations(raw: Raw) -> Iterator[Observation]:
    for gpu in range(raw.gpus):
        yield {
            "t": raw.start,
            "kind": "gpu_info",
            "uuid": raw.uuid(gpu),
            "gpu": gpu,
            "name": "NVIDIA H200",
            "architecture": "Hopper",
            "memory_total": 143771 * MIB,
        }
        yield {
            "t": raw.start,
            "kind": "gpu_limits",
            "uuid": raw.uuid(gpu),
            "max_sm_mhz": 1980,
            "max_mem_mhz": 3201,
            "power_limit_w": 700.0,
            "power_default_w": 700.0,
            "power_max_w": 700.0,
        }
    for before, row in zip([None, *raw.nvml], raw.nvml, strict=False):
        for gpu, values in enumerate(row["gpus"]):
            yield gpu_sample(raw.uuid(gpu), row["t"], values)
            if before is not None and values.get("gpm"):
                yield gpm_sample(raw.uuid(gpu), row["t"], row["t"] - before["t"], values["gpm"])
        for gpu, slow in enumerate(row.get("slow") or []):
            yield {
                "t": row["t"],
                "kind": "gpu_processes",
                "uuid": raw.uuid(gpu),
                "processes": [
                    {"pid": pid, "memory": memory, "type": "compute"}
                    for pid, memory in slow.get("procs") or []
                ],
            }


def gpu_sample(uuid: str, t: float, values: dict[str, Any]) -> Observation:
    return {
        "t": t,
        "kind": "gpu",
        "uuid": uuid,
        "utilization": values["util"] / 100,
        "memory_utilization": values["mem_util"] / 100,
        "sm_mhz": values["sm_mhz"],
        "mem_mhz": values["mem_mhz"],
        "power_mean_w": values["power_w"],
        "temperature_c": values["temp_c"],
        "reasons": values["reasons"],
        "memory_used": values["mem_used"],
    }


def gpm_sample(uuid: str, t: float, dt: float, gpm: dict[str, float | None]) -> Observation:
    sample: Observation = {"t": t, "kind": "gpm", "uuid": uuid, "dt": dt}
    for theirs, (ours, scale) in GPM_NAMES.items():
        value = gpm.get(theirs)
        if value is not None:
            sample[ours] = round(value * scale, 6)
    return sample


def thin_gpm(observations: list[Observation], period: float = 0.5) -> Iterator[Observation]:
    """Merge 10 Hz GPM samples to the rate gpuwhy samples at: a longer interval is an exact mean."""
    open_: dict[str, list[Observation]] = {}
    for observation in observations:
        if observation["kind"] != "gpm":
            yield observation
            continue
        group = open_.setdefault(observation["uuid"], [])
        group.append(observation)
        if sum(sample["dt"] for sample in group) >= period - 0.02:
            yield merge_gpm(group)
            group.clear()


def merge_gpm(group: list[Observation]) -> Observation:
    total = sum(sample["dt"] for sample in group)
    merged: Observation = {k: group[-1][k] for k in ("t", "kind", "uuid")}
    merged["dt"] = total
    for name, _ in GPM_NAMES.values():
        parts = [(s[name], s["dt"]) for s in group if name in s]
        if parts:
            merged[name] = round(sum(v * w for v, w in parts) / sum(w for _, w in parts), 6)
    return merged


def rings(raw: Raw) -> Iterator[Observation]:
    """Merge every read on a grid by time stamp, one observation a second as gpuwhy writes them."""
    for file, ring in RINGS.items():
        step = RING_STEP[ring]
        for gpu in range(raw.gpus):
            cells: dict[int, float] = {}
            for owner, stamp, value in json.loads((raw.folder / f"{file}.json").read_text()):
                if owner == gpu:
                    cells.setdefault(round(stamp / 1e6 / step), value * RING_SCALE[ring])
            yield from ring_seconds(raw, gpu, ring, step, cells)


def ring_seconds(
    raw: Raw, gpu: int, ring: str, step: float, cells: dict[int, float]
) -> Iterator[Observation]:
    per_second = round(1 / step)
    first, last = min(cells), max(cells)
    for start in range(first, last + 1, per_second):
        values = [cells.get(i) for i in range(start, min(start + per_second, last + 1))]
        if any(value is not None for value in values):
            yield {
                "t": start * step,
                "kind": "ring",
                "uuid": raw.uuid(gpu),
                "ring": ring,
                "dt": step,
                "values": [None if v is None else round(v, 4) for v in values],
                "lost": round(sum(v is None for v in values) * step, 3),
            }


def sm_shares(raw: Raw) -> Iterator[Observation]:
    """SM shares from reads that average over the driver's whole buffer (asked with time stamp 0).

    Of the process that started last it is known what the buffer holds: nothing from before its
    start. Its share is therefore its content over the time since then, at most the buffer. Where
    there is another process, that has the rest of the GPU's busy time.
    """
    for gpu in range(raw.gpus):
        values: dict[int, list[tuple[float, float]]] = {}
        for row in raw.nvml:
            for pid, stamp, sm, _ in (row.get("slow") or [{}] * raw.gpus)[gpu].get(
                "proc_util"
            ) or []:
                values.setdefault(pid, []).append((stamp / 1e6, sm / 100 * SM_BUFFER_SECONDS))
        youngest = min(values, key=lambda pid: values[pid][0][1])
        reads = values[youngest]
        start = reads[0][0] - reads[0][1]
        for (before, _), (t, content) in pairwise(reads):
            busy = busy_between(raw, gpu, before, t)
            share = min(busy, content / min(SM_BUFFER_SECONDS, t - start))
            others = [pid for pid in values if pid != youngest]
            shares = [[youngest, round(share, 4)]]
            shares += [[pid, round((busy - share) / len(others), 4)] for pid in others]
            yield {
                "t": t,
                "kind": "sm_share",
                "uuid": raw.uuid(gpu),
                "dt": round(t - before, 3),
                "shares": shares,
            }


def busy_between(raw: Raw, gpu: int, start: float, end: float) -> float:
    seen = [
        row["gpus"][gpu]["gpm"]["graphics_util"] / 100
        for row in raw.nvml[1:]
        if start <= row["t"] < end and row["gpus"][gpu].get("gpm")
    ]
    return sum(seen) / len(seen) if seen else 1.0


def processes(raw: Raw) -> Iterator[Observation]:
    held = raw.ranks()
    quota = any("cpu_stat" in row for row in raw.procs)
    group = f"/recorded/{raw.name}"
    for row in raw.procs:
        table = [process(raw, entry, held, group) for entry in row["p"]]
        yield {"t": row["t"], "kind": "processes", "processes": table}
        yield {"t": row["t"], "kind": "host", "cpus": row["p"][0]["aff"], "psi": pressures(row)}
        yield cgroup(row, group, quota)


def process(raw: Raw, entry: dict[str, Any], held: dict[int, list[int]], group: str) -> Observation:
    rank = entry["pid"] in held
    gpus = held.get(entry["pid"], [])
    several = len({tuple(g) for g in held.values()}) > 1  # a DDP job: one rank on each GPU
    item: Observation = {
        "pid": entry["pid"],
        "ppid": entry["ppid"],
        "role": "rank" if rank else "worker" if entry["ppid"] in held else "child",
        "run": raw.name if several or len(held) == 1 else f"{raw.name}-{entry['pid']}",
        "name": entry["name"],
        "state": {"running": "R", "sleeping": "S", "disk-sleep": "D"}.get(entry["st"], "S"),
        "threads": entry["thr"],
        "rss": entry["rss"],
        "affinity": entry["aff"],
        "cpu": entry["cpu"] / 100,
        "voluntary": entry["ctx"]["voluntary"],
        "involuntary": entry["ctx"]["involuntary"],
        "cgroup": group,
    }
    for name in ("read_bytes", "write_bytes", "read_chars"):
        if entry.get("io"):
            item[name] = entry["io"][name]
    if rank:
        item["gpus"] = [raw.uuid(gpu) for gpu in gpus]
        item["start"] = raw.start - 15
        if several:
            item["rank"] = gpus[0]
            item["world_size"] = len(held)
    elif not several and len(held) > 1:
        item["run"] = f"{raw.name}-{entry['ppid']}"
    return item


def pressures(row: dict[str, Any]) -> dict[str, float]:
    out = {}
    for kind in ("cpu", "io", "memory"):
        for line in (row.get(f"psi_{kind}") or "").splitlines():
            if line.startswith("some"):
                out[f"{kind}_some"] = int(line.rsplit("total=", 1)[1]) / 1e6
    return out


def cgroup(row: dict[str, Any], path: str, quota: bool) -> Observation:
    group: Observation = {
        "t": row["t"],
        "kind": "cgroup",
        "path": path,
        "version": 2,
        "pids": [entry["pid"] for entry in row["p"]],
    }
    if not quota:
        return {**group, "unlimited": True}
    stat = dict(line.split() for line in row.get("cpu_stat", "").splitlines())
    if stat:
        group |= {
            "quota_cores": 1.0,
            "nr_periods": int(stat["nr_periods"]),
            "nr_throttled": int(stat["nr_throttled"]),
            "throttled_s": int(stat["throttled_usec"]) / 1e6,
            "usage_s": int(stat["usage_usec"]) / 1e6,
        }
    return group


class Stacks:
    """py-spy captures of one process as ``stack`` and ``locals`` observations."""

    def __init__(self, raw: Raw, pid: int) -> None:
        self.raw, self.pid = raw, pid
        self.full: dict[str, str] = {}

    def observations(self) -> Iterator[Observation]:
        later = [*self.timeline(), *self.speedscope()]
        dumps = [*self.dump("dump1"), *self.dump("dump2")]
        yield from dumps
        yield from self.collapsed()
        yield from later

    def path(self, pattern: str) -> Path:
        return self.raw.folder / pattern.format(self.pid)

    def stack(self, t: float, dt: float, pid: int, thread: str, frames: list[Any]) -> Observation:
        main = thread == "MainThread"
        return {
            "t": t,
            "kind": "stack",
            "pid": pid,
            "dt": round(dt, 4),
            "thread": thread,
            "main": main,
            "frames": frames,
        }

    def dump(self, name: str) -> Iterator[Observation]:
        path = self.path(name + "-{}.log")
        try:
            threads = json.loads(path.read_text())
        except (OSError, json.JSONDecodeError):
            return
        t = self.raw.start + CAPTURE_OFFSETS[name]
        for thread in threads:
            frames = [[f["name"], f["filename"], f["line"]] for f in thread["frames"]]
            for f in thread["frames"]:
                self.full.setdefault(f["short_filename"] or f["filename"], f["filename"])
            found = self.stack(t, 0.1, self.pid, thread["thread_name"] or "", frames)
            yield {**found, "active": thread["active"], "gil": thread["owns_gil"]}
            if found["main"]:
                yield {"t": t, "kind": "locals", "pid": self.pid, "values": integers(thread)}

    def timeline(self) -> Iterator[Observation]:
        """Chrome trace: B/E events in microseconds since the capture began."""
        path = self.path("timeline-{}.json")
        if not path.exists():
            return
        start = self.raw.start + CAPTURE_OFFSETS["timeline"]
        open_: dict[Any, list[Any]] = {}
        names: dict[Any, str] = {}
        since: dict[Any, float] = {}
        for event in json.loads(path.read_text()):
            key, t = (event["pid"], event["tid"]), event["ts"] / 1e6
            frames = open_.setdefault(key, [])
            if frames and t > since[key]:
                yield from self.pieces(start + since[key], start + t, key[0], names[key], frames)
            since[key] = t
            if event["name"].startswith("thread ("):
                names[key] = event["name"].partition("): ")[2]
            elif event["ph"] == "B":
                file = event["args"]["filename"]
                frames.append([event["name"], file, event["args"]["line"]])
            elif frames:
                frames.pop()

    def pieces(
        self, start: float, end: float, pid: int, thread: str, frames: list[Any]
    ) -> Iterator[Observation]:
        while start < end:
            dt = min(0.5, end - start)
            yield self.stack(start, dt, pid, thread, list(reversed(frames)))
            start += dt

    def speedscope(self) -> Iterator[Observation]:
        path = self.path("speed-{}.json")
        if not path.exists():
            return
        data = json.loads(path.read_text())
        table = [[f["name"], f["file"], f["line"]] for f in data["shared"]["frames"]]
        for profile in data["profiles"]:
            pid = int(profile["name"].split()[1])
            thread = profile["name"].partition('"')[2].rstrip('"')
            t = self.raw.start + CAPTURE_OFFSETS["speed"]
            for frames, dt in runs(profile["samples"], profile["weights"]):
                yield from self.pieces(t, t + dt, pid, thread, [table[i] for i in frames])
                t += dt

    def collapsed(self) -> Iterator[Observation]:
        """Aggregated raw output has no order: each stack is spread evenly over the capture."""
        path = self.path("stacks-{}.raw")
        if not path.exists():
            return
        start = self.raw.start + CAPTURE_OFFSETS["stacks"]
        for line in path.read_text().splitlines():
            text, count = line.rsplit(" ", 1)
            parts = text.split(";")
            pids = [int(p.split(":")[0].split()[1]) for p in parts if p.startswith("process ")]
            at = next(i for i, p in enumerate(parts) if p.startswith("thread ("))
            thread = parts[at].partition("): ")[2]
            frames = [self.frame(part) for part in reversed(parts[at + 1 :])]
            seconds = int(count) / 100
            for k in range(int(RAW_SECONDS)):
                yield self.stack(start + k, seconds / RAW_SECONDS, pids[-1], thread, frames)

    def frame(self, text: str) -> list[Any]:
        name, _, place = text.rpartition(" (")
        file, _, line = place.rstrip(")").rpartition(":")
        return [name, self.full.get(file, guess(file)), int(line or 0)]


def guess(file: str) -> str:
    """A full path for a shortened one that no other capture has shown in full."""
    if file.removesuffix(".py") in sys.stdlib_module_names or file.split("/", maxsplit=1)[0] in (
        "multiprocessing",
        "importlib",
        "json",
        "concurrent",
    ):
        return f"/usr/lib/python3.12/{file}"
    return f"/venv/lib/python3.12/site-packages/{file}" if "/" in file else file


def runs(samples: list[list[int]], weights: list[float]) -> Iterator[tuple[list[int], float]]:
    current, total = None, 0.0
    for sample, weight in zip(samples, weights, strict=True):
        if sample != current and current is not None:
            yield current, total
            total = 0.0
        current, total = sample, total + weight
    if current is not None:
        yield current, total


def integers(thread: dict[str, Any]) -> list[list[Any]]:
    return [
        [frame["name"], frame["filename"], local["name"], int(local["repr"])]
        for frame in thread["frames"]
        for local in frame.get("locals") or []
        if local["repr"].lstrip("-").isdigit()
    ]


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
