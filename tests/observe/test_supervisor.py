"""The observer process and its supervisor: real processes, killed, hung, silenced, orphaned."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpuwhy.observe import child, supervisor
from gpuwhy.observe.describe import describe
from gpuwhy.observe.options import options_of
from gpuwhy.observe.recording import Recorder, read
from gpuwhy.observe.supervisor import Limits, Observer, observe

LIGHT: dict[str, Any] = {"sources": ["host", "processes"]}
PATIENCE_S = 30.0

SCRIPTED = textwrap.dedent("""
    # The real observer process with one source more, which hangs or dies as it is told.
    import json, os, sys, time
    from gpuwhy.observe import observer, sources
    from gpuwhy.observe.options import options_of

    class Scripted:
        name = "nvml"
        period_s = 0.1
        deadline_s = 0.3

        def __init__(self):
            self.polls = 0

        def poll(self, now):
            self.polls += 1
            if self.polls == 3 and "hang" in sys.argv:
                time.sleep(3600)
            if self.polls == 3 and "crash" in sys.argv:
                os._exit(7)
            return [{"t": now, "kind": "source", "source": "gpm", "up": True}]

        def close(self):
            pass

    if "silent" in sys.argv:
        time.sleep(3600)
    if "stubborn" in sys.argv:
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    if "unbuildable" in sys.argv:
        def build(options, hub):
            raise ImportError("no such library")
        sources.BUILDERS["infiniband"] = build
    sources.BUILDERS["nvml"] = lambda options, hub: Scripted()
    observer.main(options_of(json.loads(sys.argv[1])))
""")


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Callable[..., Observer]]:
    """Starts an Observer of SCRIPTED with words on its command line."""
    script = tmp_path / "observer.py"
    script.write_text(SCRIPTED)
    observers: list[Observer] = []

    def launch(words: tuple[str, ...], arguments: list[str]) -> child.Process:
        return subprocess.Popen(
            [sys.executable, str(script), *arguments, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(child.module_path())},
            start_new_session=True,
        )

    def start(*words: str, sources: tuple[str, ...] = ("host", "nvml"), **limits: Any) -> Observer:
        limits = {"first_pause": 0.1, "longest_pause": 0.4, **limits}
        observer = Observer(
            {"sources": list(sources)}, Limits(**limits), lambda given: launch(words, given)
        )
        observers.append(observer)
        observer.start()
        return observer

    yield start
    for observer in observers:
        observer.stop()


def wait_for(observer: Observer, what: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_S
    heard: list[dict[str, Any]] = []
    while time.monotonic() < deadline:
        for observation in observer.batch():
            heard.append(observation)
            if what(observation):
                return observation
    raise AssertionError(f"not heard among {heard[-20:]}")


def is_kind(kind: str) -> Callable[[dict[str, Any]], bool]:
    return lambda o: o["kind"] == kind


def is_down(source: str, why: str) -> Callable[[dict[str, Any]], bool]:
    return lambda o: (
        o["kind"] == "source"
        and o["source"] == source
        and not o["up"]
        and why in o.get("why", "")
        and bool(o.get("remedy"))
    )


def gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not psutil.pid_exists(pid)


def test_batches_come_at_least_every_half_second_and_nothing_is_left() -> None:
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    kinds: set[str] = set()
    with observe(LIGHT) as batches:
        last = time.monotonic()
        for batch in batches:
            now = time.monotonic()
            assert now - last < 3.0
            last = now
            kinds |= {o["kind"] for o in batch}
            if {"host", "processes", "source"} <= kinds:
                break
    assert {p.pid for p in psutil.Process().children(recursive=True)} <= before


def test_all_sources_say_something_of_themselves() -> None:
    said: dict[str, bool] = {}
    deadline = time.monotonic() + PATIENCE_S
    with observe() as batches:
        for batch in batches:
            said |= {o["source"]: o["up"] for o in batch if o["kind"] == "source"}
            if {"nvml", "processes", "cgroup", "stacks", "host", "nccl_ras", "infiniband"} <= set(
                said
            ):
                break
            assert time.monotonic() < deadline, said
    assert said["host"] is True


def test_a_killed_observer_is_reported_and_replaced() -> None:
    observer = Observer(LIGHT, Limits(first_pause=0.2))
    observer.start()
    try:
        wait_for(observer, is_kind("host"))
        pid = observer.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        report = wait_for(observer, is_down("host", "it ended (signal 9)"))
        assert "a new one is started" in report["why"]
        wait_for(observer, is_kind("host"))
        assert observer.pid != pid
        assert gone(pid)
    finally:
        observer.stop()


def test_an_observer_that_ends_by_itself_is_replaced(scripted: Callable[..., Observer]) -> None:
    wait_for(scripted("crash"), is_down("gpm", "exit status 7"))


def test_a_hanging_source_stops_no_other_and_ends_in_a_new_process(
    scripted: Callable[..., Observer],
) -> None:
    observer = scripted("hang", hung=2.0)
    wait_for(observer, is_down("nvml", "nvml did not answer for"))
    first = observer.pid
    wait_for(observer, is_kind("host"))  # goes on while the other hangs
    assert observer.pid == first
    report = wait_for(observer, is_down("gpm", "the observer process: "))
    assert "did not answer for 2 s" in report["why"]
    wait_for(observer, is_kind("host"))
    assert observer.pid != first
    assert first is not None
    assert gone(first)


def test_a_silent_observer_is_replaced(scripted: Callable[..., Observer]) -> None:
    wait_for(scripted("silent", silent=1.0), is_down("host", "silent for 1 s"))


def test_a_source_that_cannot_be_built_is_reported_and_the_rest_goes_on(
    scripted: Callable[..., Observer],
) -> None:
    observer = scripted("unbuildable", sources=("host", "infiniband"))
    wait_for(observer, is_down("infiniband", "no such library"))
    wait_for(observer, is_kind("host"))


def test_an_observer_that_ignores_sigterm_is_killed(
    scripted: Callable[..., Observer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "GRACE_S", 0.5)
    observer = scripted("stubborn")
    pid = observer.pid
    time.sleep(2.0)  # until it ignores the signal
    observer.stop()
    assert pid is not None
    assert gone(pid)


def test_a_source_that_hangs_in_each_new_process_is_left_out(
    scripted: Callable[..., Observer],
) -> None:
    """It must not interrupt the others for ever."""
    observer = scripted("hang", hung=0.5)
    for _ in range(2):
        wait_for(observer, is_down("nvml", "the observer process: "))
    wait_for(observer, is_kind("host"))
    last = observer.pid
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        assert not any(o.get("source") == "gpm" for o in observer.batch())
    assert observer.pid == last


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_observer_does_not_outlive_its_parent(how: signal.Signals) -> None:
    code = textwrap.dedent("""
        from gpuwhy.observe.supervisor import Observer
        observer = Observer({"sources": ["host"]})
        observer.start()
        while not observer.batch(1.0):
            pass
        print(observer.pid, flush=True)
        while True:
            observer.batch(1.0)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(child.module_path())},
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(how)
    assert gone(pid)


def test_the_observer_ends_when_nobody_reads_it() -> None:
    process = child.start([json.dumps(LIGHT)])
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE_S) == 0


def test_a_slow_reader_costs_observations_and_no_source(tmp_path: Path) -> None:
    """The pipe is full: sources go on, the rest is dropped and counted."""
    code = textwrap.dedent("""
        import sys
        from gpuwhy.observe import observer, outbox, sources
        outbox.Outbox.__init__.__defaults__ = (50,)

        class Chatty:
            name, period_s, deadline_s = "nvml", 0.02, 5.0

            def poll(self, now):
                state = {"t": now, "kind": "source", "source": "nvml", "up": True}
                return [state] + [{"t": now, "kind": "gpu", "uuid": "x" * 5000}] * 10

            def close(self):
                pass

        sources.BUILDERS["nvml"] = lambda options, hub: Chatty()
        observer.main({"sources": ["nvml"]})
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(child.module_path())},
    )
    try:
        assert process.stdout is not None
        time.sleep(4.0)  # nobody reads meanwhile
        deadline = time.monotonic() + PATIENCE_S
        dropped = 0
        while not dropped and time.monotonic() < deadline:
            observation = json.loads(process.stdout.readline())
            dropped = observation.get("dropped", 0)
        assert dropped > 10
    finally:
        child.end(process, 5.0)


def test_the_working_folder_cannot_shadow_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise RuntimeError('the job wrote this')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with observe({"sources": ["host"]}) as batches:
        assert any(
            o["kind"] == "host" for batch in (next(batches) for _ in range(20)) for o in batch
        )


def test_a_recording_can_be_made_of_it(tmp_path: Path) -> None:
    head = describe()
    assert head["host"]["hostname"]
    assert head["software"]["python"]
    path = tmp_path / "a.gpuwhy.gz"
    with Recorder(path, head) as recorder, observe(LIGHT) as batches:
        for batch in batches:
            for observation in batch:
                recorder.write(observation)
            if any(o["kind"] == "processes" for o in batch):
                break
    assert {o["kind"] for o in read(path)[1]} >= {"processes", "source"}


def test_options() -> None:
    class Settings:
        max_overhead = 0.05
        recording = ()

    assert options_of(Settings()) == {"max_overhead": 0.05}
    assert options_of(None) == {}
    assert options_of({"pace": "close"}) == {"pace": "close"}
    with pytest.raises(ValueError, match="no option speed"):
        options_of({"speed": 3})
