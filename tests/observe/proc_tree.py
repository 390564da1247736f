"""Builds trees of files like /proc and /sys/fs/cgroup, for tests."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

HZ = os.sysconf("SC_CLK_TCK")
BOOT = int(time.time()) - 1_000_000


class ProcTree:
    """A /proc of its own: ``add`` a process, change it, ``remove`` it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = time.time()  # ages are told at this time
        root.mkdir(parents=True, exist_ok=True)
        self.write("stat", f"cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nbtime {BOOT}\n")

    def write(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def add(
        self,
        pid: int,
        argv: Sequence[str],
        *,
        ppid: int = 1,
        name: str | None = None,
        age: float = 100.0,
        env: Mapping[str, str] | None = None,
        exe: str | None = "/usr/bin/python3.12",
        maps: Sequence[str] = (),
        cgroup: str = "0::/job\n",
        state: str = "S",
        cpu_s: float = 1.0,
        session: int | None = None,
    ) -> None:
        """A process as the kernel shows it; ``exe`` None: not to be read by us."""
        start = int((self.now - age - BOOT) * HZ)
        name = name or Path(argv[0]).name
        ticks = int(cpu_s * HZ)
        stat = (
            f"{pid} ({name}) {state} {ppid} {pid} {session or pid} 0 -1 0 0 0 0 0 {ticks} 0 0 0"
            f" 20 0 3 0 {start} 1000000 5000 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0\n"
        )
        folder = str(pid)
        self.write(f"{folder}/stat", stat)
        self.write(f"{folder}/task/{pid}/stat", stat)
        self.write(f"{folder}/schedstat", f"{int(cpu_s * 1e9)} 500000000 10\n")
        self.write(f"{folder}/cmdline", "".join(word + "\0" for word in argv))
        self.write(f"{folder}/cgroup", cgroup)
        self.write(f"{folder}/io", "rchar: 1000\nwchar: 1\nread_bytes: 4096\nwrite_bytes: 512\n")
        self.write(
            f"{folder}/status",
            f"Name:\t{name}\nCpus_allowed_list:\t0-3\n"
            "voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n",
        )
        if env is not None:
            self.write(f"{folder}/environ", "".join(f"{k}={v}\0" for k, v in env.items()))
        self.write(f"{folder}/maps", "".join(f"7f00-7f01 r-xp 0 0:0 1 {path}\n" for path in maps))
        link = self.root / folder / "exe"
        link.unlink(missing_ok=True)
        if exe is not None:
            link.symlink_to(exe)

    def remove(self, pid: int) -> None:
        folder = self.root / str(pid)
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        folder.rmdir()


TORCH = ("/venv/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so",)


def files(root: Path, content: Mapping[str, str]) -> Path:
    """Write files below ``root``."""
    for name, text in content.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
