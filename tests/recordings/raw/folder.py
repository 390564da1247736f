"""One raw folder: what was written, by which process, on which GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MIB = 1024 * 1024


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
