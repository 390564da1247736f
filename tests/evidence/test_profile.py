"""`gpuwhy profile` on a real job with a worker process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from gpuwhy.evidence.profile import ProfileError, profile
from gpuwhy.evidence.profile_labels import HIDDEN, without_commands

ROOT = Path(__file__).parents[2]
JOB = """
import multiprocessing, time
def make():
    while True: sum(range(2000))
def wait_for_batch():
    time.sleep(0.05)
def train():
    while True: wait_for_batch()
if __name__ == "__main__":
    multiprocessing.get_context("fork").Process(target=make, daemon=True).start()
    train()
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    script = tmp_path_factory.mktemp("job") / "train.py"
    script.write_text(JOB)
    child = subprocess.Popen([sys.executable, str(script), "--api-key=hunter2"])
    time.sleep(1.0)
    yield child.pid
    for process in psutil.Process(child.pid).children():
        process.kill()
    child.kill()
    child.wait()


@pytest.mark.parametrize("name", ["out.svg", "out.raw", "out.txt", "out.json"])
def test_rank_and_worker_waits_included(job: int, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    told: list[tuple[float, float]] = []
    samples = profile(job, 1.0, path, progress=lambda now, whole: told.append((now, whole)))
    assert samples > 20
    text = path.read_text()
    assert "wait_for_batch" in text, "a wait of the rank"
    assert "make" in text, "the work of its child"
    assert "hunter2" not in text, "py-spy puts the command line into it"
    assert f"process {job}" in text or name.endswith("json")
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert told[-1][0] <= told[-1][1] == 1.0
    if name.endswith("svg"):
        ElementTree.fromstring(text)
    if name.endswith("json"):
        assert json.loads(text)["profiles"]


def test_ctrl_c_keeps_what_was_seen(job: int, tmp_path: Path) -> None:
    timer = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    assert profile(job, 60, tmp_path / "out.raw") > 0
    assert time.monotonic() - began < 30
    assert "wait_for_batch" in (tmp_path / "out.raw").read_text()


@pytest.mark.parametrize(
    ("name", "usage", "says"),
    [("out.png", True, "use one of .svg"), ("none/out.svg", True, "cannot write")],
)
def test_a_request_that_cannot_be_met(
    job: int, tmp_path: Path, name: str, usage: bool, says: str
) -> None:
    with pytest.raises(ProfileError, match=says) as raised:
        profile(job, 1, tmp_path / name)
    assert raised.value.usage is usage
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: os.mkfifo(path)])
def test_what_is_no_file_is_refused_before_anything_is_watched(
    job: int, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "out.svg"
    make(path)
    began = time.monotonic()
    with pytest.raises(ProfileError, match="is no file") as raised:
        profile(job, 60, path)
    assert raised.value.usage
    assert time.monotonic() - began < 30
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.svg"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give its capabilities away")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_a_refusal_is_told_as_such(job: int, tmp_path: Path) -> None:
    """Of a tree of processes that may not be read py-spy itself says that there is no Python."""
    bare = ("setpriv", "--bounding-set=-sys_ptrace")
    asked = ("profile", "--pid", str(job), "--for", "1s", str(tmp_path / "out.svg"))
    done = subprocess.run(
        [*bare, sys.executable, "-m", "gpuwhy", *asked],
        capture_output=True, text=True, timeout=90, cwd=ROOT / "exporter", check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"process {job} holds rights that gpuwhy lacks" in done.stderr
    assert "CAP_SYS_PTRACE" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_the_older_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    path.write_text("older")
    ended = subprocess.Popen(["true"])
    ended.wait()
    other = subprocess.Popen(["sleep", "60"])
    try:
        with pytest.raises(ProfileError, match="has ended"):
            profile(ended.pid, 1, path)
        with pytest.raises(ProfileError, match="Python"):
            profile(other.pid, 1, path)
    finally:
        other.kill()
        other.wait()
    assert path.read_text() == "older"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.svg"]


SVG = (
    "<g><title>{label} (891 samples, 100.00%)</title><rect x='1'/><text x=\"1\">{short}</text></g>"
)


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("all", "all"),
        ("main (/job/train.py:12)", "main (/job/train.py:12)"),
        ("&lt;module&gt; (&lt;string&gt;:1)", "&lt;module&gt; (&lt;string&gt;:1)"),
        ("process 1:&quot;python a.py --key=k (1)&quot;", "process 1"),
        ("process 1:&quot;python -c\nkey = 7", "process 1"),
        ("key = &quot;7&quot;", HIDDEN),
        ("key = 7\nmain (/job/train.py:12)", HIDDEN),
    ],
)
def test_a_picture_shows_frames_alone(label: str, shown: str) -> None:
    """A semicolon in a command line begins a box of its own."""
    box = SVG.format(label=label, short=label[:9] + "..")
    expected = box if label == shown else SVG.format(label=shown, short=shown)
    assert without_commands(box, "flamegraph") == expected


@pytest.mark.parametrize("box", ["<svg/>", "<title>process 1:&quot;a&quot;</title>"])
def test_a_picture_of_another_kind_is_refused(box: str) -> None:
    with pytest.raises(ValueError, match="drawn in another way"):
        without_commands(box, "flamegraph")


def test_stacks_are_folded() -> None:
    names = [('process 1:"python\n--key=k;main"', ""), ("f;\ng", "a.py"), ("h", "a.py")]
    frames = [{"name": name, "file": file, "line": 7} for name, file in names]
    text = json.dumps(
        {"shared": {"frames": frames}, "profiles": [{"samples": [[0, 1], [0, 1, 2], [0, 1]]}]}
    )
    shown = json.loads(without_commands(text, "speedscope"))
    assert [frame["name"] for frame in shown["shared"]["frames"]] == ["process 1", "f;\ng", "h"]
    assert without_commands(text, "folded").splitlines() == [
        "process 1;f:\\ng (a.py:7) 2",
        "process 1;f:\\ng (a.py:7);h (a.py:7) 1",
    ]


@pytest.mark.parametrize("name", ["out.svg", "out.raw", "out.json"])
def test_a_command_line_that_looks_like_stacks(tmp_path: Path, name: str) -> None:
    program = "import time\nkey = 'canary'; other = 'canary'\nwhile True: time.sleep(0.01)\n"
    hostile = ['a"; canary', "canary</title></text> (5 samples, 1.00%)</title>", "new\ncanary;x 5"]
    job = subprocess.Popen([sys.executable, "-c", program, *hostile])
    try:
        time.sleep(0.5)
        profile(job.pid, 1.0, tmp_path / name)
    finally:
        job.kill()
        job.wait()
    text = (tmp_path / name).read_text()
    assert "canary" not in text
    assert f"process {job.pid}" in text
    assert "module" in text
