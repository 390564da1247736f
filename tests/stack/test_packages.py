"""Programs: those on PATH of a sufficient version, else Debian's unpacked, else a clear message."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from scripts.stack import packages
from scripts.stack.packages import PackageError


def put(folder: Path, name: str, version: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{name}, version {version} (branch: HEAD)'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing but a shell on PATH, and nothing unpacked."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(packages, "RUN", tmp_path / "run")
    monkeypatch.setattr(packages, "PACKAGES", tmp_path / "run/packages")
    monkeypatch.setattr(
        packages.shutil,
        "which",
        lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None,
    )
    return tmp_path


def test_one_on_path_is_taken(alone: Path) -> None:
    path = put(alone, "prometheus", "3.1.0")
    assert packages.programs("prometheus") == {"prometheus": path}


def test_debian_has_another_name_for_alertmanager(alone: Path) -> None:
    path = put(alone, "prometheus-alertmanager", "0.33.1+ds")
    assert packages.find("alertmanager") == path


def test_one_that_is_too_old_is_not(alone: Path) -> None:
    put(alone, "prometheus", "2.42.0")
    assert packages.find("prometheus") is None


def test_one_that_does_not_run_is_not(alone: Path) -> None:
    path = alone / "prometheus"
    path.write_bytes(b"\x7fELF of another machine")
    path.chmod(0o755)
    assert packages.find("prometheus") is None


def test_without_apt_the_remedy_is_named(alone: Path) -> None:
    with pytest.raises(PackageError, match=r"apt-get is not here.*prometheus.io/download"):
        packages.programs("prometheus")


def test_without_a_keyring_the_remedy_is_named(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(alone, "apt-get", "1")
    put(alone, "dpkg", "1")
    monkeypatch.setattr(packages, "KEYRING", str(alone / "no-keyring.gpg"))
    with pytest.raises(PackageError, match="debian-archive-keyring"):
        packages.programs("prometheus")


def test_without_a_network_the_remedy_is_named(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (alone / "apt-get").write_text("#!/bin/sh\necho 'E: Could not resolve host' >&2\nexit 100\n")
    (alone / "apt-get").chmod(0o755)
    put(alone, "dpkg", "1")
    monkeypatch.setattr(packages, "KEYRING", "/dev/null")
    monkeypatch.setattr(Path, "is_file", lambda path: path.exists())
    with pytest.raises(PackageError, match=r"Could not resolve host.*network"):
        packages.programs("prometheus")


@pytest.mark.parametrize(
    ("name", "text", "mirror"),
    [
        (
            "debian.sources",
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\n",
            "http://mirror.example/debian",
        ),
        (
            "sources.list",
            "# deb http://no/debian x main\ndeb [signed-by=/k] https://b.example/debian x main\n",
            "https://b.example/debian",
        ),
        ("other.list", "deb https://packages.example/cuda x main\n", packages.MIRROR),
    ],
)
def test_the_mirror_is_this_machine_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, mirror: str
) -> None:
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(packages, "SOURCES", (tmp_path / "none", tmp_path))
    assert packages.mirror() == mirror


def test_debians_alertmanager_finds_its_templates_where_it_runs() -> None:
    """It would look in a folder of the system's, which nobody but root could make."""
    program = packages.programs("alertmanager")["alertmanager"]
    if not program.is_relative_to(packages.PACKAGES):
        pytest.skip(f"{program} is the system's own")
    assert (packages.working_folder(program) / "default.tmpl").is_file()
    assert packages.SHARE.encode() not in program.read_bytes()
    assert subprocess.run([program, "--version"], check=False).returncode == 0


def test_two_at_once_fetch_once(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one waits, and finds what the first has unpacked."""
    fetched: list[list[str]] = []

    def unpack(wanted: list[str]) -> None:
        fetched.append(wanted)
        time.sleep(0.3)
        put(alone, "prometheus", "3.5.3")

    monkeypatch.setattr(packages, "_unpack", unpack)
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda name: packages.programs(name), ["prometheus"] * 4))
    assert fetched == [["prometheus"]]
    assert found == [{"prometheus": alone / "prometheus"}] * 4


def test_a_program_that_runs_is_not_in_the_way(tmp_path: Path) -> None:
    """Another process unpacks beside it."""
    program = tmp_path / "prometheus-alertmanager"
    shutil.copy("/bin/sleep", program)
    with program.open("ab") as file:
        file.write(packages.SHARE.encode())
    running = subprocess.Popen([program, "60"])
    try:
        packages._relocate(program)
    finally:
        running.kill()
        running.wait()
    assert packages.RELOCATED.encode() in program.read_bytes()
    assert os.access(program, os.X_OK)
    assert list(tmp_path.iterdir()) == [program]
