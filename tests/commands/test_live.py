"""Watching from a command: when it ends, what it shows, and a real job from end to end."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwhy.commands import diagnose, live, profile, record
from gpuwhy.observe.observation import Observation
from gpuwhy.pipeline import Pipeline
from gpuwhy.settings import Settings

pytestmark = pytest.mark.live

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
GPUWHY = (sys.executable, "-m", "gpuwhy")
T = 1796050000.0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Host:
    """Batches as an observer gives them, half a second apart, on a clock of its own."""

    def __init__(self, *kinds: str, set_by: float = 0.0) -> None:
        self.now = T
        self.kinds = kinds
        self.batches = 0
        self.set_by = set_by
        """Seconds by which somebody sets the clock that observations are stamped with, once."""

    def clock(self) -> float:
        return self.now

    def __iter__(self) -> Iterator[list[Observation]]:
        while True:
            self.now += 0.5
            self.batches += 1
            yield [self._seen(kind) for kind in self.kinds]

    def _seen(self, kind: str) -> Observation:
        wall = self.now + (self.set_by if self.now > T + 5 else 0.0)
        seen: dict[str, Any] = {"t": wall, "kind": kind, "uuid": "GPU-a", "gpu": 0}
        if kind == "processes":
            rank = {"pid": 1, "ppid": 0, "role": "rank", "run": "job", "gpus": ["GPU-a"]}
            seen |= {"processes": [rank]}
        if kind == "gpm":
            seen |= {"dt": 0.5, "graphics": 0.51}
        if kind == "source":
            del seen["uuid"]
            seen |= {"source": "nvml", "up": False, "why": "none", "remedy": "none"}
        return seen


def watch(host: Host, for_s: float, progress: live.Progress | None = None) -> live.Sight:
    sight = live.Sight()
    progress = progress or live.Progress(io.StringIO(), for_s)
    live.feed(host, Pipeline(), for_s, sight, progress, host.clock)
    return sight


def test_it_watches_as_long_as_asked_and_a_little_for_the_watermark() -> None:
    host = Host("gpu_info", "gpm")
    watch(host, 10)
    assert 10 <= host.now - T <= 10 + live.GRACE_S + 1


def test_it_gives_up_where_nothing_is_in_sight() -> None:
    host = Host("source")
    assert watch(host, 60).empty
    assert host.now - T <= live.NOTHING_AFTER_S + 1


@pytest.mark.parametrize("set_by", [-7200.0, -8.0, 7200.0])
def test_a_clock_that_is_set_changes_nothing_of_the_time_watched(set_by: float) -> None:
    host = Host("gpu_info", "gpm", set_by=set_by)
    watch(host, 10)
    assert 10 <= host.now - T <= 10 + live.GRACE_S + 1
    host = Host("gpu_info", set_by=set_by)
    sight, progress = live.Sight(), live.Progress(io.StringIO(), 10)
    record.keep(host, lambda _: None, 10, sight, progress, host.clock)
    assert 10 <= host.now - T <= 11


def test_what_a_source_cannot_see_is_kept_as_its_last_word() -> None:
    host = Host("source")
    sight = watch(host, 60)
    assert sight.refused == {"nvml": "none; none"}
    assert diagnose.nothing_seen(sight.refused).splitlines()[-1] == "nvml: none; none"
    several = {"nvml": "no driver", "hca": "no card", "gpm": "no driver"}
    assert live.in_words(several) == "\ngpm, nvml: no driver\nhca: no card"
    sight.add([{"t": host.now, "kind": "source", "source": "nvml", "up": True}])
    assert sight.refused == {}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give its capabilities away")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_without_capabilities_it_says_that_it_may_not_look(job: int) -> None:
    bare = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all")
    done = subprocess.run(
        [*bare, *GPUWHY, "diagnose", "--for", "3s"],
        capture_output=True, text=True, timeout=90, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    (said,) = [line for line in done.stderr.splitlines() if "gpuwhy: processes: " in line]
    assert "may not be looked into" in said
    assert "SYS_PTRACE" in said


def test_progress_says_what_is_in_sight_on_a_terminal_only() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    watch(Host("gpu_info", "gpm", "processes"), 5, live.Progress(terminal, 5))
    watch(Host("gpu_info"), 5, live.Progress(pipe, 5))
    assert "watching: 2 of 5 s, 1 job, GPU 0 51 % busy" in terminal.getvalue()
    assert pipe.getvalue() == ""


def test_recording_ends_after_its_time_from_the_first_sight_on() -> None:
    host = Host("gpu_info")
    written: list[Observation] = []
    sight = live.Sight()
    record.keep(host, written.append, 5, sight, live.Progress(io.StringIO(), 5), host.clock)
    assert not sight.empty
    assert 5 <= host.now - T <= 6
    assert len(written) == host.batches


def test_a_rank_is_found_with_its_gpu() -> None:
    host = Host("gpu_info", "processes")
    ranks, indices = profile.ranks_in_sight(host, host.clock)
    assert [rank["pid"] for rank in ranks] == [1]
    assert indices == {"GPU-a": "0"}
    assert host.now - T <= profile.SETTLE_S + 1


def test_sigterm_ends_the_watching_as_ctrl_c_does() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), live.ending_on_sigterm():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_observer_looks_closely() -> None:
    with live.observing(Settings(max_overhead=0.5)) as batches:
        assert isinstance(next(batches), list)


@pytest.fixture(scope="module")
def job() -> Iterator[int]:
    """A real job that waits for its input; its PID. As from a shell: not below the test process,
    which may have loaded PyTorch itself and would then count as the job."""
    start = '"$0" "$1" 150 >/dev/null 2>&1 & echo $!'
    command = ["sh", "-c", start, sys.executable, str(HERE / "starved_job.py")]
    pid = int(subprocess.run(command, capture_output=True, check=True).stdout)
    time.sleep(4)
    yield pid
    os.kill(pid, signal.SIGTERM)


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GPUWHY, *map(str, arguments)], capture_output=True, text=True, timeout=90, cwd=ROOT
    )


def entry_of(told: str, pid: int) -> dict[str, Any]:
    entries: list[dict[str, Any]] = json.loads(told)["gpus"]
    own = [entry for entry in entries if entry["pid"] == pid]
    assert len(own) == 1, entries
    return own[0]


def test_a_starved_job_is_told_from_a_command_line(job: int) -> None:
    done = run("diagnose", "--for", "7s", "--json")
    assert done.returncode == 0, done.stderr
    entry = entry_of(done.stdout, job)
    assert entry["cause"] == "data", entry
    assert entry["causes"][0]["function"]["name"].endswith("tokenize")
    assert entry["causes"][0]["function"]["file"].endswith("starved_job.py")
    if entry["gpu"] is None:
        assert entry["accounts"] == {}
        assert "nvml" in {blind["signal"] for blind in entry["cannot_see"]}


def test_what_was_recorded_is_diagnosed_as_it_was_seen(job: int, tmp_path: Path) -> None:
    path = tmp_path / "job.gpuwhy.gz"
    done = run("record", path, "--for", "5s")
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == [path]
    entry = entry_of(run("diagnose", "--json", "--recording", path).stdout, job)
    assert entry["cause"] == "data", entry


def test_what_is_stopped_early_keeps_what_was_seen(job: int, tmp_path: Path) -> None:
    path = tmp_path / "job.gpuwhy.gz"
    pipe = subprocess.PIPE
    recording = subprocess.Popen([*GPUWHY, "record", path], cwd=ROOT, stderr=pipe)
    watching = subprocess.Popen(
        [*GPUWHY, "diagnose", "--for", "5m", "--json"], cwd=ROOT, stdout=pipe, text=True
    )
    time.sleep(6)
    recording.send_signal(signal.SIGTERM)
    watching.send_signal(signal.SIGINT)
    verdict, _ = watching.communicate(timeout=30)
    _, told = recording.communicate(timeout=30)
    assert (recording.returncode, watching.returncode) == (0, 0), told
    assert list(tmp_path.iterdir()) == [path]
    assert run("diagnose", "--recording", path).returncode == 0
    entry = entry_of(verdict, job)
    assert entry["cause"] in ("data", "unknown"), entry


def test_a_profile_of_a_process(job: int, tmp_path: Path) -> None:
    path = tmp_path / "rank.svg"
    done = run("profile", "--pid", str(job), "--for", "3s", path)
    assert done.returncode == 0, done.stderr
    assert "tokenize" in path.read_text()
    assert run("profile", "--pid", str(job), "--for", "3s", tmp_path / "rank.pdf").returncode == 2


def test_the_doctor_attaches_to_the_job(job: int) -> None:
    checks = {
        check["name"]: check for check in json.loads(run("doctor", "--json").stdout)["checks"]
    }
    assert checks["stacks"]["state"] == "ok"
    assert checks["processes"]["state"] == "ok"


@pytest.mark.parametrize("target", ["no/such/folder/x.gpuwhy.gz", "."])
def test_a_bad_target_of_a_recording_is_refused_before_anything(
    target: str, tmp_path: Path
) -> None:
    done = run("record", tmp_path / target, "--for", "60s")
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr
    assert list(tmp_path.iterdir()) == []


def alone(*arguments: str | Path) -> subprocess.Popen[str]:
    """Run where no other process is in sight: in a PID namespace of its own."""
    command = ["unshare", "--pid", "--fork", "--mount-proc", *GPUWHY, *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def can_be_alone() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_be_alone(), reason="needs the right to make a PID namespace")
@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="a GPU is always something to observe")
def test_nothing_to_observe_is_status_1_and_leaves_no_file(tmp_path: Path) -> None:
    processes = [
        alone("diagnose"),
        alone("record", tmp_path / "x.gpuwhy.gz", "--for", "2s"),
        alone("profile", tmp_path / "x.svg"),
    ]
    told = [process.communicate(timeout=90)[1] for process in processes]
    assert [process.returncode for process in processes] == [1, 1, 1], told
    assert "nothing to observe" in told[0]
    assert "nothing was recorded" in told[1]
    assert "no training process in sight" in told[2]
    assert all("gpuwhy doctor" in message for message in told)
    assert list(tmp_path.iterdir()) == []
