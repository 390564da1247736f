"""Packing of slots, CPU limits on a tree of files, the table, processes and the whole run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from bench.h200 import limits, packing, processes, table

from bench import truth

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="Popen's process_group")


def test_single_gpu_variants_share_a_slot_with_cores_apart() -> None:
    variants: packing.Variants = {
        "a": {}, "b": {}, "c": {}, "two": {"gpus": 2}, "own": {"launch": {"record_from": "start"}}
    }  # fmt: skip
    plan = packing.pack(["a", "two", "b", "own", "c"], variants, 2, [0, 1, 2, 3])
    shape = [[(p.variant, p.gpus, p.cores) for p in slot] for slot in plan]
    assert shape == [
        [("two", [0, 1], [0, 1, 2, 3])],
        [("a", [0], [0, 1]), ("b", [1], [2, 3])],
        [("own", [0], [0, 1, 2, 3])],
        [("c", [0], [0, 1, 2, 3])],
    ]
    with pytest.raises(ValueError, match="needs 2 GPUs"):
        packing.pack(["two"], variants, 1, [0])
    with pytest.raises(KeyError):
        packing.pack(["none such"], variants, 1, [0])


def test_limits_of_version_2(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu cpuset memory")
    (tmp_path / "cgroup.subtree_control").write_text("cpu cpuset")
    group = limits.Limits("x", tmp_path)
    group.quota(1.5)
    group.cores([2, 3])
    group.join(42)
    own = tmp_path / "bench-x"
    assert (own / "cpu.max").read_text() == "150000 100000"
    assert (own / "cpuset.cpus").read_text() == "2,3"
    assert (own / "cgroup.procs").read_text() == "42"


def test_limits_of_version_1(tmp_path: Path) -> None:
    for controller in ("cpu", "cpuset"):
        (tmp_path / controller).mkdir()
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-3")
    (tmp_path / "cpuset" / "cpuset.mems").write_text("0")
    group = limits.Limits("x", tmp_path)
    group.quota(0.5)
    assert (tmp_path / "cpu" / "bench-x" / "cpu.cfs_quota_us").read_text() == "50000"
    assert (tmp_path / "cpuset" / "bench-x" / "cpuset.mems").read_text() == "0"


def test_the_quota_is_mended_towards_the_wanted_share() -> None:
    cores, true_rate = 2.0, 0.25  # steps a second a core; the job could do 1 a second
    for _ in range(4):
        share = 1 - min(cores * true_rate, 1.0)
        cores = limits.tuned(cores, share, 0.2)
    assert cores * true_rate == pytest.approx(0.8, abs=0.01)


def test_the_verdict_of_a_gpu_in_the_table() -> None:
    answer: dict[str, Any] = {
        "gpus": [
            {"gpu": 0, "cause": "data", "causes": [{"cause": "data", "lost_ratio": 0.42}]},
            {"gpu": 1, "cause": "none", "causes": []},
        ]
    }
    due = truth.Expected(frozenset({"data"}), frozenset())
    assert table.verdict_of(table.entries_of(answer, 0, None)) == "data 0.42"
    assert table.verdict_of(table.entries_of(answer, 0, None), due) == "ok data 0.42"
    assert table.verdict_of(table.entries_of(answer, 1, None), due) == "NO none"
    assert table.verdict_of(table.entries_of("Traceback", 0, None), due) == ""
    answer["gpus"].append({"gpu": 0, "pid": 7, "cause": "unknown", "causes": []})
    assert table.verdict_of(table.entries_of(answer, 0, 7)) == "unknown"
    place = {"variant": "c01", "gpus": [0], "error": "JobError: c01 ended with 1"}
    rows = table.rows({"slot": 3, "places": [place]}, Path("/nowhere"))
    assert rows[0][-1] == "JobError: c01 ended with 1"
    assert "JobError" in table.text(rows)


def test_everything_below_a_process_is_ended(tmp_path: Path) -> None:
    script = (
        "import subprocess,sys,time;"
        "subprocess.Popen([sys.executable,'-c','import time;time.sleep(60)'],"
        "start_new_session=True);time.sleep(60)"
    )
    popen = processes.spawn([sys.executable, "-c", script], {}, tmp_path / "log")
    until = time.monotonic() + 20
    while len(found := processes.descendants([popen.pid])) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(found) == 2
    processes.end([popen.pid], [popen])
    assert processes.wait_gone(found, 5)


def run_lot(out: Path, recorder: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.h200.run_lot", "--out", str(out), "--gpus", "2"]
    command += ["--record", recorder, "--diagnose", "cat {file}", "--settle", "1", *more]
    env = os.environ | {"JOB_SCALE": "tiny", "OMP_NUM_THREADS": "1", "STARTED_BY": str(out)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=200)


@pytest.fixture
def recorder(tmp_path: Path) -> str:
    """A command that takes its time and leaves an answer where the recording would be."""
    script = tmp_path / "recorder.py"
    answer: dict[str, Any] = {"gpus": [{"gpu": 0, "cause": "none", "causes": []}]}
    script.write_text(
        "import sys,time,pathlib\n"
        "time.sleep(float(sys.argv[2]))\n"
        f"pathlib.Path(sys.argv[1]).write_text({json.dumps(json.dumps(answer))})\n"
    )
    return f"{sys.executable} {script} {{file}} {{seconds}}"


def test_a_lot_is_recorded_and_packed_and_leaves_nothing(tmp_path: Path, recorder: str) -> None:
    pytest.importorskip("torch")
    done = run_lot(tmp_path, recorder, "c43", "c35", "--seconds", "3", "--limit", "150")
    assert done.returncode == 0, done.stdout + done.stderr
    with tarfile.open(tmp_path / "lot.tar") as archive:
        names = archive.getnames()
        member = archive.extractfile("slot00/result.json")
        assert member
        result = json.load(member)
    for name in ("c43.truth.jsonl.gz", "c35.truth.jsonl.gz", "c43-c35.gpuwhy.gz"):
        assert f"slot00/{name}" in names
    assert "table.txt" in names
    assert result["verdict"]["gpus"][0]["cause"] == "none"
    assert all(place["notes"]["left_by_itself"] for place in result["places"])
    assert not _left_over(tmp_path)


def test_a_recorder_that_fails_is_told_and_time_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = run_lot(tmp_path, "sh -c 'echo no right >&2; exit 3'", "c43", "--limit", "100")
    assert done.returncode == 1
    assert "recorder ended with 3: no right" in done.stdout
    done = run_lot(tmp_path, "true", "c43", "--limit", "20")
    assert "no time left" in done.stdout
    assert run_lot(tmp_path, "true", "c99").returncode == 2
    assert not _left_over(tmp_path)


def _left_over(out: Path) -> list[str]:
    """Jobs of the lot that was written there; other tests may have some of their own meanwhile."""
    jobs, sign = str(ROOT / "bench" / "jobs"), f"STARTED_BY={out}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
            ours = sign in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if ours and jobs in command:
            found.append(command)
    return found
