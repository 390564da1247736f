"""``./run demo``: recordings, exporter, the real Prometheus and Alertmanager, notifications."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripts.stack import expect, packages, processes
from tests.end_to_end.clones import clone, free_ports

ROOT = Path(__file__).parents[2]
LONG, SHORT = 110, 75
SERVICES = ["alertmanager", "exporter", "prometheus"]


@dataclass(frozen=True)
class Demo:
    status: int
    told: str
    root: Path


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Demo]:
    """Three demonstrations at once: as it is, with a rule deleted, and of a healthy job that is
    said to be faulty."""
    packages.programs("prometheus", "alertmanager")
    whole, without_rule, healthy = (clone(tmp_path_factory.mktemp("clone")) for _ in range(3))
    delete_rules(without_rule, "GPUDataStarved")
    few = tmp_path_factory.mktemp("recordings")
    for name in ("data_slow", "healthy"):
        for path in (ROOT / "tests/recordings").glob(f"{name}.*"):
            shutil.copy(path, few)
    wrong = tmp_path_factory.mktemp("wrong")
    shutil.copy(ROOT / "tests/recordings/data_slow.gpuwhy.gz", wrong)
    shutil.copy(ROOT / "tests/recordings/healthy.expected.json", wrong / "data_slow.expected.json")
    runs = {
        "whole": (whole, ["--for", f"{LONG}s"]),
        "rule deleted": (without_rule, ["--for", f"{SHORT}s", "--recordings", str(few)]),
        "healthy": (healthy, ["--for", f"{SHORT}s", "--recordings", str(wrong)]),
    }
    with ThreadPoolExecutor() as pool:
        found = {name: pool.submit(demo, *arguments) for name, arguments in runs.items()}
        return {name: future.result() for name, future in found.items()}


def delete_rules(root: Path, alert: str) -> None:
    """An alert's rules taken out of the rule file by hand."""
    path = root / "alerting/rules/causes.yml"
    head, *rules = re.split(r"(?m)^(?=      - alert: )", path.read_text())
    kept = [rule for rule in rules if not rule.startswith(f"      - alert: {alert}\n")]
    assert len(kept) < len(rules)
    path.write_text(head + "".join(kept))


def demo(root: Path, arguments: list[str]) -> Demo:
    done = subprocess.run(
        ["sh", "run", "demo", *arguments],
        cwd=root,
        env={**os.environ, **free_ports()},
        capture_output=True,
        text=True,
        timeout=280,
    )
    return Demo(done.returncode, done.stdout + done.stderr, root)


def test_each_fault_is_told_and_nothing_else(demos: dict[str, Demo]) -> None:
    whole = demos["whole"]
    assert whole.status == 0, whole.told
    assert "NOT AS EXPECTED" not in whole.told
    for name in ("tokenize", "burn", "slow (/job/train.py", "CPU quota of 1 core", "train.py:104"):
        assert name in whole.told


def test_it_is_marked_as_recorded(demos: dict[str, Demo]) -> None:
    headings = [line for line in demos["whole"].told.splitlines() if line.startswith("--- ")]
    assert headings
    assert all("[recorded]" in line for line in headings)


def test_with_a_rule_deleted_it_fails(demos: dict[str, Demo]) -> None:
    deleted = demos["rule deleted"]
    assert deleted.status == 1, deleted.told
    assert "data_slow: no notification of data naming tokenize" in deleted.told


def test_with_an_alert_for_a_healthy_job_it_fails(demos: dict[str, Demo]) -> None:
    """The same fault, said to be a healthy job: its notification must not have come."""
    healthy = demos["healthy"]
    assert healthy.status == 1, healthy.told
    assert "GPUDataStarved (data_slow) should not have arrived" in healthy.told


def test_nothing_is_left_running(demos: dict[str, Demo]) -> None:
    commands = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            commands.append(process.read_bytes())
    for one in demos.values():
        folder = one.root / ".run/demo"
        assert folder.is_dir()
        assert list(folder.glob("*.pid")) == []
        assert [command for command in commands if str(folder).encode() in command] == []


@contextlib.contextmanager
def demonstration(root: Path) -> Iterator[subprocess.Popen[str]]:
    """One without an end, of one recording, once it is up."""
    few = root / "few"
    few.mkdir(exist_ok=True)
    for path in (ROOT / "tests/recordings").glob("healthy.*"):
        shutil.copy(path, few)
    process = subprocess.Popen(
        ["sh", "run", "demo", "--recordings", str(few)],
        cwd=root,
        env={**os.environ, **free_ports()},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert any("Alertmanager" in line for line in process.stdout), "it ended"
        yield process
    finally:
        process.kill()
        process.wait()
        processes.stop_all(root / ".run/demo")


def alive(root: Path) -> list[str]:
    return [file.stem for file in (root / ".run/demo").glob("*.pid") if processes.running(file)]


def test_whoever_ends_it_ends_what_it_started(tmp_path: Path) -> None:
    """SIGTERM by itself; after SIGKILL ``./run down``, which the next demonstration asks for."""
    root = clone(tmp_path / "clone")
    with demonstration(root) as process:
        assert len(alive(root)) == 3
        process.terminate()
        process.wait(60)
        assert list((root / ".run/demo").glob("*.pid")) == []
    with demonstration(root) as process:
        process.kill()
        process.wait()
        assert len(alive(root)) == 3
        assert "./run down ends it" in demo(root, []).told
        down = subprocess.run(["sh", "run", "down"], cwd=root, capture_output=True, text=True)
        assert (down.returncode, down.stderr) == (0, "")
        assert sorted(down.stdout.removeprefix("ended: ").strip().split(", ")) == SERVICES
        assert alive(root) == []


def test_bad_input_is_told(tmp_path: Path) -> None:
    few = demo(ROOT, ["--for", "10s"])  # neither gets as far as to start anything
    assert few.status == 2
    assert "60" in few.told
    empty = demo(ROOT, ["--recordings", str(tmp_path)])
    assert empty.status == 2
    assert f"holds no recordings (*{expect.SUFFIX})" in empty.told
