"""The process table, pressure and the control group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.recordings.raw.folder import Raw

from gpuwhy.observe.observation import Observation


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
