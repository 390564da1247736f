"""The source on a real PyTorch job, against the truth that the job writes."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from tests.observe.live_job import LiveJob, of_kind, wait_for, watch

from gpuwhy.observe import pyspy
from gpuwhy.observe.observation import Observation
from gpuwhy.observe.stacks import StackSource, Target
from gpuwhy.observe.stacks_budget import CLOSE, Pace

pytestmark = pytest.mark.live

WATCH_S = 18.0
CLOCK_S = 0.03  # the kernel's clock tick, and the time that a dump takes
NOBODY = 65534


class Watched:
    """A job watched once for all the tests that only look at what was seen."""

    def __init__(self, job: LiveJob, seen: list[Observation], pauses: list[str]) -> None:
        self.pid = job.pid
        self.steps = job.steps()
        self.workers = [t.pid for t in job.targets() if t.role == "worker"]
        self.items = {pid: job.items(pid) for pid in self.workers}
        self.seen, self.pauses = seen, pauses
        self.main = [o for o in of_kind(seen, "stack", self.pid) if o["main"] and o["dt"] > 0]


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    """Another user's job, where the tests run as root: user 65534, workers and all."""
    pytest.importorskip("torch")
    options = ["--uid", str(NOBODY)] if os.geteuid() == 0 else []
    # Not pytest's folder: that one may be swept away by the next run's start.
    with TemporaryDirectory() as name, LiveJob(Path(name), *options) as job:
        source = StackSource(CLOSE)
        source.set_targets(job.targets())
        pauses: list[str] = []
        done = threading.Event()
        looker = threading.Thread(target=_look_for_stops, args=(job.pid, pauses, done))
        looker.start()
        try:
            seen = watch(source, WATCH_S)
        finally:
            source.close()
            done.set()
            looker.join()
        yield Watched(job, seen, pauses)


def _look_for_stops(pid: int, pauses: list[str], done: threading.Event) -> None:
    while not done.wait(0.003):
        status = Path(f"/proc/{pid}/status").read_text()
        state, tracer = status.split("State:\t")[1][0], status.split("TracerPid:\t")[1].split()[0]
        if state in "Tt" or tracer != "0":
            pauses.append(f"state {state}, tracer {tracer}")


def _waiting(stack: Observation) -> bool:
    return any(file.endswith("torch/utils/data/dataloader.py") for _, file, *_ in stack["frames"])


def _share(spans: list[tuple[float, float, bool]], start: float, end: float) -> float:
    parts = [(max(0.0, min(b, end) - max(a, start)), yes) for a, b, yes in spans]
    return sum(part for part, yes in parts if yes) / sum(part for part, _ in parts)


def test_phase_shares_are_those_of_the_job(watched: Watched) -> None:
    seen = [(o["t"], o["t"] + o["dt"], _waiting(o)) for o in watched.main]
    truth = [(s["asked"], s["came"], True) for s in watched.steps]
    truth += [(s["came"], s["done"], False) for s in watched.steps]
    starts = [seen[0][0] + i for i in range(int(seen[-1][1] - seen[0][0] - 10) + 1)]
    errors = [_share(seen, t, t + 10) - _share(truth, t, t + 10) for t in starts]
    assert len(errors) >= 5
    assert 0.1 < _share(truth, starts[0], starts[-1] + 10) < 0.9
    assert sum(abs(error) <= 0.05 for error in errors) >= 0.95 * len(errors), errors


def test_time_of_the_main_thread_is_covered_once(watched: Watched) -> None:
    assert all(0 < o["dt"] <= 1.0 for o in watched.main)
    ends = [o["t"] + o["dt"] for o in watched.main]
    assert all(b["t"] >= end - 1e-3 for end, b in zip(ends, watched.main[1:], strict=False))
    covered = sum(o["dt"] for o in watched.main) / (ends[-1] - watched.main[0]["t"])
    assert covered > 0.9


def test_changes_are_told_when_they_happen(watched: Watched) -> None:
    """The absolute time: a record has none of its own, it is told from when it was written."""
    came = [s["came"] for s in watched.steps]
    pairs = zip(watched.main, watched.main[1:], strict=False)
    seen = [b["t"] for a, b in pairs if _waiting(a) and not _waiting(b)]
    lags = sorted(t - min(came, key=lambda at: abs(at - t)) for t in seen)
    assert len(lags) >= 12
    assert abs(sum(lags) / len(lags)) < 0.04, lags


def test_step_is_the_one_in_progress(watched: Watched) -> None:
    seen = of_kind(watched.seen, "locals", watched.pid)
    assert len(seen) >= 5
    for observation in seen:
        steps = [v for function, _, name, v in observation["values"] if name == "step"]
        assert len(steps) == 1
        t = observation["t"]
        near = {
            truth["step"]
            for truth, after in zip(watched.steps, watched.steps[1:], strict=False)
            if truth["came"] - CLOCK_S <= t <= after["came"] + CLOCK_S
        }
        assert steps[0] in near, (t, steps, near)


def test_only_integers_leave_and_no_secrets(watched: Watched) -> None:
    values = [v for o in of_kind(watched.seen, "locals") for v in o["values"]]
    assert all(type(value) is int for *_, value in values)
    assert not {name for _, _, name, _ in values} & {"api_token", "password_length"}


def test_workers_are_seen_at_what_they_do(watched: Watched) -> None:
    right = wrong = 0
    for pid in watched.workers:
        stacks = [o for o in of_kind(watched.seen, "stack", pid) if o["main"]]
        assert len(stacks) >= 10
        for stack in stacks:
            assert stack["frames"][-1][0].endswith("_worker_loop"), "what the fork left is cut"
            t = stack["t"] + stack["dt"]
            busy = any(name == "decode" for name, *_ in stack["frames"])
            truth = [i for i in watched.items[pid] if i["began"] <= t <= i["ended"]]
            near = [
                i
                for i in watched.items[pid]
                if min(abs(i["began"] - t), abs(i["ended"] - t)) < CLOCK_S
            ]
            right += busy == bool(truth) or bool(near)
            wrong += busy != bool(truth) and not near
    assert wrong <= 0.02 * (right + wrong)


def test_workers_tell_the_batch_they_make(watched: Watched) -> None:
    seen = [o for pid in watched.workers for o in of_kind(watched.seen, "locals", pid)]
    assert len(seen) >= 10
    for observation in seen:
        ((_, _, name, batch),) = observation["values"]
        made = [
            item["index"] // 4
            for item in watched.items[observation["pid"]]
            if item["began"] - 0.1 <= observation["t"] <= item["ended"] + 0.1
        ]
        assert name == "idx"
        assert batch in made


def test_what_a_leaf_line_calls(watched: Watched) -> None:
    leaves = [o["frames"][0] for o in of_kind(watched.seen, "stack")]
    decoding = [leaf for leaf in leaves if leaf[0] == "decode"]
    assert decoding
    assert all(leaf[3:] == ["sleep"] for leaf in decoding)
    assert {leaf[3] for leaf in leaves if len(leaf) > 3} <= {"sleep", "scalar"}


def test_a_dump_tells_which_threads_are_active(watched: Watched) -> None:
    instants = [o for o in of_kind(watched.seen, "stack", watched.pid) if o["dt"] == 0]
    assert any(o["active"] for o in instants)
    assert any(not o["active"] for o in instants)


def test_the_job_was_never_stopped(watched: Watched) -> None:
    assert watched.pauses == []


def test_source_tells_of_itself(watched: Watched) -> None:
    own = [o for o in of_kind(watched.seen, "source") if "pid" not in o]
    assert own[0]["t"] <= watched.main[0]["t"] + WATCH_S
    assert all(o["up"] for o in own)
    last = own[-1]
    assert last["cpu_s"] > 0
    assert last["reads"] > 0
    assert {"lag_s", "torn", "failures", "share", "period_s", "version"} <= set(last)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_ptrace_and_nothing_written(tmp_path: Path) -> None:
    """Every py-spy that the source starts runs under strace."""
    log = tmp_path / "calls"
    wrapper = tmp_path / "py-spy"
    calls = "ptrace,process_vm_readv,process_vm_writev,kill,tkill,tgkill,open,openat"
    wrapper.write_text(
        f'#!/bin/sh\nexec strace -f -A -o {log} -e trace={calls} {pyspy.executable()} "$@"\n'
    )
    wrapper.chmod(0o755)
    job = subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"])
    source = StackSource(Pace(chunk_s=1.0, share_per_rank=1.0), executable=wrapper)
    try:
        time.sleep(0.3)
        source.set_targets(
            [Target(job.pid, psutil.Process(job.pid).create_time(), "rank", job.pid)]
        )
        seen = watch(source, 20, until=lambda seen: any(o.get("dt") for o in seen))
    finally:
        source.close()
        job.kill()
        job.wait()
    assert any(o.get("dt") for o in seen)
    text = log.read_text()
    assert "process_vm_readv(" in text
    for forbidden in ("ptrace(", "process_vm_writev(", "kill("):
        assert forbidden not in text.replace("+++ killed", ""), forbidden
    opened = [line for line in text.splitlines() if f"/proc/{job.pid}/" in line]
    assert opened
    assert not [line for line in opened if "O_WRONLY" in line or "O_RDWR" in line]


def _sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)"])


def _target(pid: int, role: str = "rank") -> Target:
    return Target(pid, psutil.Process(pid).create_time(), role, pid)


def test_budget_is_kept(tmp_path: Path) -> None:
    """Many workers want to be seen each second; what all of it costs is measured by the kernel."""
    children = [_sleeper() for _ in range(10)]
    source = StackSource()
    seconds = 9.0
    try:
        time.sleep(1.0)
        targets = [_target(child.pid, "worker") for child in children]
        targets[0] = _target(children[0].pid)
        source.set_targets(targets)
        before, own = resource.getrusage(resource.RUSAGE_CHILDREN), time.thread_time()
        seen = watch(source, seconds)
        source.close()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    finally:
        for child in children:
            child.kill()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    used += time.thread_time() - own
    assert source.share == pytest.approx(source.pace.share(1))
    burst, last_capture = 0.2, 0.1
    assert used <= source.share * seconds + burst + last_capture
    assert source.tally.cpu_s == pytest.approx(used, rel=0.25, abs=0.05)
    looked_at = {o["pid"] for o in of_kind(seen, "stack")}
    assert looked_at == {child.pid for child in children}, "each is seen in its turn"
    for child in children:
        child.wait()


def test_a_job_that_ends_while_it_is_sampled() -> None:
    job = _sleeper()
    source = StackSource(Pace(share_per_rank=1.0))
    try:
        time.sleep(0.3)
        source.set_targets([_target(job.pid)])
        seen = watch(source, 10, until=lambda seen: of_kind(seen, "stack"))
        time.sleep(0.5)
        job.kill()
        job.wait()
        seen += watch(source, 4)
        source.set_targets([])
        seen += watch(source, 0.3)
    finally:
        source.close()
    assert [o for o in of_kind(seen, "stack") if o["dt"] > 0], "what was seen until then is kept"
    assert not [o for o in of_kind(seen, "source") if not o["up"]], "an end is no failure"


def test_a_stopped_job_is_reported_and_left_as_it_is() -> None:
    job = _sleeper()
    source = StackSource(Pace(chunk_s=1.0, share_per_rank=1.0))

    def says(seen: list[Observation], up: bool) -> bool:
        return any(o["up"] is up for o in of_kind(seen, "source", job.pid))

    try:
        time.sleep(0.3)
        os.kill(job.pid, signal.SIGSTOP)
        wait_for(lambda: psutil.Process(job.pid).status() == psutil.STATUS_STOPPED, 5)
        source.set_targets([_target(job.pid)])
        stopped = watch(source, 10, until=lambda seen: says(seen, up=False))
        assert says(stopped, up=False)
        assert not of_kind(stopped, "stack")
        reason = of_kind(stopped, "source", job.pid)[0]
        assert "stopped" in reason["why"]
        assert "-CONT" in reason["remedy"]
        assert psutil.Process(job.pid).status() == psutil.STATUS_STOPPED
        os.kill(job.pid, signal.SIGCONT)
        again = watch(source, 10, until=lambda seen: says(seen, True) and of_kind(seen, "stack"))
        assert says(again, up=True)
        assert of_kind(again, "stack")
        time.sleep(0.2)
        assert psutil.Process(job.pid).status() != psutil.STATUS_STOPPED
    finally:
        source.close()
        job.kill()
        job.wait()


def test_a_process_that_is_no_python() -> None:
    other = subprocess.Popen(["sleep", "60"])
    source = StackSource()
    try:
        source.set_targets([_target(other.pid)])
        seen = watch(source, 10, until=lambda seen: of_kind(seen, "source", other.pid))
        seen += watch(source, 0.3)
    finally:
        source.close()
        other.kill()
        other.wait()
    refused = of_kind(seen, "source", other.pid)
    assert refused
    assert refused[0]["up"] is False
    assert "no Python interpreter" in refused[0]["why"]
    assert refused[0]["remedy"]
    whole = [o for o in of_kind(seen, "source") if "pid" not in o][-1]
    assert whole["up"] is False


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_users_job_without_the_right_to_read_it(tmp_path: Path) -> None:
    """The observer gives up root first; the job is root's."""
    job = _sleeper()
    copy = Path("/tmp") / f"gpuwhy-test-{os.getpid()}" / "py-spy"
    copy.parent.mkdir(mode=0o755)
    shutil.copy(pyspy.executable(), copy)
    code = f"""
import json, os, resource, sys, time
from pathlib import Path
from gpuwhy.observe.stacks import StackSource, Target
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
source = StackSource(executable=Path({str(copy)!r}))
source.set_targets([Target({job.pid}, 0.0, "rank", {job.pid})])
seen, end = [], time.monotonic() + 10
while time.monotonic() < end and not any(o.get("pid") for o in seen):
    seen += source.poll(time.time())
    time.sleep(0.1)
seen += source.poll(time.time())
source.close()
print(json.dumps(seen))
"""
    try:
        time.sleep(0.3)
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        job.kill()
        job.wait()
        shutil.rmtree(copy.parent)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    refusal = of_kind(seen, "source", job.pid)[0]
    assert refusal["up"] is False
    assert "belongs to user root" in refusal["why"]
    assert "SYS_PTRACE" in refusal["remedy"]
    assert not of_kind(seen, "stack")


def test_a_pid_that_has_become_another_process(tmp_path: Path) -> None:
    """Between the start and the end of a capture the start time of the PID changes."""
    job = _sleeper()
    proc = tmp_path / "proc"
    base = proc / str(job.pid)
    base.mkdir(parents=True)
    stat = Path(f"/proc/{job.pid}/stat").read_text()
    (base / "stat").write_text(stat)
    source = StackSource(Pace(chunk_s=1.0, share_per_rank=1.0), proc=proc)
    try:
        time.sleep(0.3)
        source.set_targets([_target(job.pid)])
        seen = watch(source, 10, until=lambda seen: of_kind(seen, "stack"))
        assert of_kind(seen, "stack")
        head, _, tail = stat.rpartition(")")
        fields = tail.split()
        fields[19] = str(int(fields[19]) + 1)
        (base / "stat").write_text(f"{head}) {' '.join(fields)}")
        assert not of_kind(watch(source, 2.5), "stack")
    finally:
        source.close()
        job.kill()
        job.wait()


def test_without_py_spy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = StackSource(executable=tmp_path / "py-spy")
    (seen,) = source.poll(time.time())
    assert seen["up"] is False
    assert "py-spy" in seen["why"]
    assert "pip install" in seen["remedy"]
    assert source.describe() == {}
    source.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a PID namespace")
def test_a_job_in_a_container(tmp_path: Path) -> None:
    """In a PID namespace of its own the interpreter calls its main thread 1, from Python 3.11 on;
    before, nothing names the only thread of a process without ``threading``."""
    script = tmp_path / "train.py"
    script.write_text(
        "import time\n"
        "def train():\n"
        "    for step in range(10**9):\n"
        "        time.sleep(0.02)\n"
        "train()\n"
    )
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, str(script)]
    container = subprocess.Popen(command)
    source = StackSource(Pace(chunk_s=1.0, share_per_rank=1.0))
    try:
        wait_for(lambda: psutil.Process(container.pid).children(), 10)
        (job,) = psutil.Process(container.pid).children()
        time.sleep(0.5)
        source.set_targets([_target(job.pid)])
        seen = watch(source, 10, until=lambda seen: any(o.get("dt") for o in seen))
    finally:
        source.close()
        for child in psutil.Process(container.pid).children():
            child.kill()
        container.wait()
    stacks = [o for o in of_kind(seen, "stack", job.pid) if o["dt"] > 0]
    assert stacks
    assert all(o["main"] for o in stacks)
    if sys.version_info >= (3, 11):
        assert all(o["tid"] == 1 for o in stacks)
    assert stacks[0]["frames"][0] == ["train", str(script), 4, "sleep"]
    assert of_kind(seen, "locals", job.pid)[0]["values"][0][:3] == ["train", str(script), "step"]


def test_close_leaves_no_child() -> None:
    job = _sleeper()
    source = StackSource(Pace(chunk_s=5.0, share_per_rank=1.0))
    try:
        time.sleep(0.3)
        source.set_targets([_target(job.pid)])
        watch(source, 10, until=lambda seen: of_kind(seen, "stack"))
        watch(source, 0.5)
        mine = [c for c in psutil.Process().children() if c.name().startswith("py-spy")]
        assert mine
        source.close()
        assert not [c for c in psutil.Process().children() if c.name().startswith("py-spy")]
        assert job.poll() is None
    finally:
        source.close()
        job.kill()
        job.wait()
