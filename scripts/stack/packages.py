"""Prometheus, Alertmanager and their tools: those on PATH, or Debian's unpacked beside the project.

Nothing is installed and no root is needed: apt's own client downloads and verifies the packages
with lists of its own under ``.run/apt``, and ``dpkg -x`` unpacks them to ``.run/packages``. They
are of Debian's next release, whose binaries need no more than a libc of 2.34.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = ROOT / ".run"
PACKAGES = RUN / "packages"

SHARE = "/usr/share/prometheus/alertmanager"
RELOCATED = "/proc/self/cwd".ljust(len(SHARE), "/")
"""Debian's Alertmanager opens its built-in templates in a fixed folder. The unpacked copy looks for
them in its working directory instead: a path of the same length, so that it fits in its place."""
SUITE = "forky"  # Prometheus 3.5, Alertmanager 0.33
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = "http://deb.debian.org/debian"
DEADLINE_S = 300
SOURCES = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d"))


class PackageError(Exception):
    """A program cannot be had; the message names the remedy."""


@dataclass(frozen=True)
class Program:
    """A program: its names, the Debian package that holds it, the least version that will do."""

    names: tuple[str, ...]
    package: str
    least: tuple[int, int]


PROGRAMS: Mapping[str, Program] = {
    "prometheus": Program(("prometheus",), "prometheus", (2, 45)),
    "promtool": Program(("promtool",), "promtool", (2, 45)),
    "alertmanager": Program(
        ("alertmanager", "prometheus-alertmanager"), "prometheus-alertmanager", (0, 27)
    ),
    "amtool": Program(("amtool",), "prometheus-alertmanager", (0, 27)),
    "docker-compose": Program(("docker-compose",), "docker-compose", (2, 24)),
    "docker": Program(("docker",), "docker-cli", (23, 0)),
    "dockerd": Program(("dockerd",), "docker.io", (23, 0)),
    "containerd": Program(("containerd",), "containerd", (0, 0)),
}
"""``keep_firing_for`` came with Prometheus 2.42; older Alertmanagers lack secrets in files, older
Composes ``!reset``. Docker is for tests alone."""


def programs(*wanted: str) -> dict[str, Path]:
    """Paths of these ``PROGRAMS``, unpacking what is not there. Raises PackageError."""
    found = {name: find(name) for name in wanted}
    if None in found.values():
        with _alone():  # what was missing may be there by now
            found = {name: path or find(name) for name, path in found.items()}
            absent = sorted({PROGRAMS[name].package for name, path in found.items() if not path})
            if absent:
                _unpack(absent)
    return {name: path or _unpacked(name) for name, path in found.items()}


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """While nobody else unpacks here: another ``./run``, or another process of the tests."""
    RUN.mkdir(parents=True, exist_ok=True)
    with (RUN / "packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def find(name: str) -> Path | None:
    """A program of a sufficient version on PATH, else one unpacked before, else None."""
    program = PROGRAMS[name]
    places = [*os.get_exec_path(), *(str(PACKAGES / "usr" / name) for name in ("bin", "sbin"))]
    for place in places:
        for each in program.names:
            path = Path(place) / each
            if os.access(path, os.X_OK) and path.is_file() and _version(path) >= program.least:
                return path
    return None


def _unpacked(name: str) -> Path:
    path = find(name)
    if path is None:
        raise PackageError(
            f"{name} was unpacked to {PACKAGES} and does not run here (a libc of 2.34 or "
            f"newer is needed); install it from https://prometheus.io/download and put it on PATH"
        )
    return path


def _version(path: Path) -> tuple[int, int]:
    """(major, minor); (0, 0) for what does not answer."""
    try:
        told = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    match = re.search(r"version (\d+)\.(\d+)", told.stdout + told.stderr)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _unpack(packages: Sequence[str]) -> None:
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise PackageError(
                f"{' and '.join(packages)} not found, and {tool} is not here to fetch them: put "
                "prometheus, promtool and alertmanager (https://prometheus.io/download) on PATH"
            )
    if not Path(KEYRING).is_file():
        raise PackageError(
            f"{' and '.join(packages)} not found, and Debian's archive cannot be verified without "
            f"{KEYRING}: install debian-archive-keyring, or put prometheus, promtool and "
            "alertmanager (https://prometheus.io/download) on PATH"
        )
    print(f"fetching {', '.join(packages)} from Debian, once ...", file=sys.stderr, flush=True)
    cache = RUN / "apt"
    options = _apt_options(cache)
    _call(["apt-get", *options, "-qq", "update"], cache)
    _call(["apt-get", *options, "-qq", "download", *packages], cache / "debs")
    for deb in sorted((cache / "debs").glob("*.deb")):
        _call(["dpkg", "-x", str(deb), str(PACKAGES)], cache)
        deb.unlink()
    _relocate(PACKAGES / "usr" / "bin" / "prometheus-alertmanager")


def _relocate(program: Path) -> None:
    """Once, and in its place at once: it may be running."""
    whole = program.read_bytes() if program.is_file() else b""
    if SHARE.encode() in whole:
        fresh = program.with_name(f"{program.name}.new")
        fresh.write_bytes(whole.replace(SHARE.encode(), RELOCATED.encode()))
        fresh.chmod(program.stat().st_mode)
        fresh.replace(program)


def working_folder(program: Path) -> Path:
    """Where to run a program: beside its files if it was unpacked, else anywhere."""
    share = PACKAGES / SHARE.lstrip("/")
    return share if program.is_relative_to(PACKAGES) and share.is_dir() else RUN


def _apt_options(cache: Path) -> list[str]:
    """Options that let apt work for this user with folders, sources and lists of our own."""
    for folder in ("lists/partial", "archives/partial", "etc", "debs"):
        (cache / folder).mkdir(parents=True, exist_ok=True)
    (cache / "etc" / "next.sources").write_text(
        f"Types: deb\nURIs: {mirror()}\nSuites: {SUITE}\nComponents: main\nSigned-By: {KEYRING}\n"
    )
    settings = {
        "Dir::State::lists": cache / "lists",
        "Dir::Cache": cache,
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": cache / "etc",
        "APT::Sandbox::User": "root",  # no switch of users: the folders are this user's
        "Acquire::Retries": "3",
        "Acquire::Languages": "none",
    }
    return [f"-o{key}={value}" for key, value in settings.items()]


def mirror() -> str:
    """Debian's archive as this machine has it, or Debian's own."""
    listed = [SOURCES[0], *sorted(SOURCES[1].glob("*"))]
    listed = [path for path in listed if path.suffix in (".list", ".sources") and path.is_file()]
    texts = [path.read_text(errors="replace") for path in listed]
    for text in texts:
        for uri in re.findall(r"^(?:URIs:|deb(?:\s+\[.*?\])?)\s+(\S+)", text, re.MULTILINE):
            if uri.rstrip("/").endswith("/debian"):
                return str(uri)
    return MIRROR


def _call(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PackageError(
            f"{command[0]} gave no answer for {DEADLINE_S} s: no network?"
        ) from error
    if done.returncode:
        told = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise PackageError(
            f"Debian's packages cannot be fetched: {' / '.join(told)}. Look at the network and the "
            "space on this disk, or put prometheus, promtool and alertmanager "
            "(https://prometheus.io/download) on PATH"
        )
