"""The process source: on trees of files, and on real PyTorch jobs with real workers."""

from __future__ import annotations

import json
import os
import platform
import pwd
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.observe.proc_tree import TORCH, ProcTree, files

from gpuwhy.observe import census as census_module
from gpuwhy.observe.census import Census
from gpuwhy.observe.processes import ProcessSource

Item = dict[str, Any]


def table_of(observations: list[Item]) -> dict[int, Item]:
    found = next(o for o in observations if o["kind"] == "processes")
    return {item["pid"]: item for item in found["processes"]}


def states_of(observations: list[Item]) -> dict[tuple[str, int | None], Item]:
    return {(o["source"], o.get("pid")): o for o in observations if o["kind"] == "source"}


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    tree = ProcTree(tmp_path / "proc")
    tree.add(1, ["init"], ppid=0, exe="/sbin/init")
    return tree


@pytest.fixture
def source(tree: ProcTree, tmp_path: Path) -> ProcessSource:
    mount = files(
        tmp_path / "cgroup",
        {
            "cgroup.controllers": "cpu",
            "cgroup.procs": "1\n",
            "job/cgroup.procs": "10\n11\n",
            "job/cpu.max": "100000 100000\n",
        },
    )
    return ProcessSource(proc=str(tree.root), cgroup_mount=str(mount))


def test_everything_that_is_told_of_a_rank(tree: ProcTree, source: ProcessSource) -> None:
    env = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "GPUWHY_RUN": "bert", "SECRET": "x"}
    argv = ["python3", "train.py", "--api-key", "s3cret"]
    tree.add(10, argv, env=env, age=100.0, cpu_s=5.0)
    source.jobs.gpu_processes("GPU-1", {10})
    source.poll(time.time())
    time.sleep(0.05)
    tree.add(10, argv, env=env, age=100.0, cpu_s=5.5)
    observations = source.poll(time.time())
    item = table_of(observations)[10]
    assert item.pop("start") == pytest.approx(time.time() - 100.0, abs=3.0)
    assert item.pop("cpu") > 0
    assert item.pop("main_cpu") > 0
    assert item.pop("user") == pwd.getpwuid(os.getuid()).pw_name
    assert item == {
        "pid": 10,
        "ppid": 1,
        "role": "rank",
        "run": "bert",
        "rank": 1,
        "local_rank": 1,
        "world_size": 2,
        "rank_pid": 10,
        "gpus": ["GPU-1"],
        "name": "python3",
        "python": "3.12",
        "script": "train.py",
        "command": "python3 train.py --api-key ***",
        "cgroup": "/job",
        "state": "S",
        "threads": 3,
        "rss": 5000 * os.sysconf("SC_PAGE_SIZE"),
        "affinity": 4,
        "run_delay": 0.0,
        "read_bytes": 4096,
        "write_bytes": 512,
        "read_chars": 1000,
        "voluntary": 7,
        "involuntary": 3,
    }
    assert "SECRET" not in str(observations)
    group = next(o for o in observations if o["kind"] == "cgroup")
    assert (group["path"], group["quota_cores"], group["pids"]) == ("/job", 1.0, [10])


@pytest.mark.parametrize(("online", "told"), [("0-1", [1, None]), ("0", [None, None]), ("", [])])
def test_the_numa_node_of_a_rank(
    tree: ProcTree, tmp_path: Path, online: str, told: list[int | None]
) -> None:
    nodes = tmp_path / "sys/devices/system/node"
    for node, cpus in ((0, "2-3"), (1, "0-1")):
        (nodes / f"node{node}").mkdir(parents=True)
        (nodes / f"node{node}/cpulist").write_text(f"{cpus}\n")
    (nodes / "online").write_text(f"{online}\n")
    tree.add(10, ["python", "train.py"])  # it last ran on CPU 0
    tree.add(11, ["python", "train.py"], ppid=10, name="pt_data_worker")
    source = ProcessSource(proc=str(tree.root), cgroup_mount="/none", sys=str(tmp_path / "sys"))
    source.jobs.gpu_processes("GPU-1", {10})
    table = table_of(source.poll(time.time()))
    assert [table[pid].get("numa") for pid in (10, 11)] == (told or [None, None])


def test_a_framework_makes_a_rank_and_its_forks_are_not_looked_into(
    tree: ProcTree, source: ProcessSource
) -> None:
    tree.add(10, ["python3", "train.py"], env={}, maps=TORCH)
    tree.add(11, ["python3", "train.py"], env={}, ppid=10, name="pt_data_worker")
    tree.add(20, ["python3", "server.py"], env={}, maps=["/usr/lib/libc.so.6"])
    tree.add(21, ["bash"], exe="/bin/bash")
    found = table_of(source.poll(time.time()))
    assert {pid: item["role"] for pid, item in found.items()} == {10: "rank", 11: "worker"}
    assert found[11]["rank_pid"] == 10


def test_a_process_that_execs_python_is_found(tree: ProcTree, source: ProcessSource) -> None:
    tree.add(10, ["bash", "-c", "..."], exe="/bin/bash", age=10.0)
    assert table_of(source.poll(time.time())) == {}
    tree.add(10, ["python3", "train.py"], env={}, maps=TORCH, age=10.0)
    assert table_of(source.poll(time.time()))[10]["role"] == "rank"


def test_a_framework_that_is_loaded_later_is_found(tree: ProcTree, source: ProcessSource) -> None:
    now = time.time()
    tree.add(10, ["python3", "train.py"], env={}, age=5.0)
    assert table_of(source.poll(now)) == {}
    tree.write("10/maps", f"7f00-7f01 r-xp 0 0:0 1 {TORCH[0]}\n")
    assert table_of(source.poll(now + 11.0))[10]["role"] == "rank"


def test_jobs_end_and_zombies_have_ended(tree: ProcTree, source: ProcessSource) -> None:
    for pid in (10, 11):
        tree.add(pid, ["python3", f"{pid}.py"], env={}, maps=TORCH)
    assert table_of(source.poll(time.time())).keys() == {10, 11}
    tree.remove(10)
    tree.add(11, ["python3", "11.py"], env={}, maps=TORCH, state="Z")
    assert table_of(source.poll(time.time())) == {}


def test_a_refused_environment_is_reported_for_its_process(
    tree: ProcTree, source: ProcessSource
) -> None:
    tree.add(10, ["python3", "train.py"], env=None)
    source.jobs.gpu_processes("GPU-1", {10})
    observations = source.poll(time.time())
    item = table_of(observations)[10]
    assert item["run"].startswith("train.py-")
    assert "rank" not in item
    states = states_of(observations)
    assert states["processes", None]["up"] is True
    refused = states["processes", 10]
    assert refused["up"] is False
    assert "environment of PID 10" in refused["why"]
    assert "DAC_READ_SEARCH" in refused["remedy"]


def test_where_nothing_may_be_looked_into_it_says_so(tree: ProcTree, source: ProcessSource) -> None:
    tree.add(10, ["python3", "train.py"], env=None, exe=None)
    (tree.root / "10/maps").unlink()
    state = states_of(source.poll(time.time()))["processes", None]
    assert state["up"] is False
    assert "1 Python processes of other users" in state["why"]


def test_hidden_processes_are_reported(tree: ProcTree, source: ProcessSource) -> None:
    tree.remove(1)
    state = states_of(source.poll(time.time()))["processes", None]
    assert state["up"] is False
    assert "pid: host" in state["remedy"]


@pytest.mark.parametrize(
    ("first", "main", "namespace", "up"),
    [
        ("gpuwhy", 1, "pid:[4026532999]", False),
        ("tini", 7, "pid:[4026532999]", False),
        ("bash", 7, "pid:[4026532999]", True),  # somebody's container
        ("tini", 7, "pid:[4026531836]", True),
    ],
)
def test_a_container_of_our_own_without_the_host_s_processes_is_reported(
    tree: ProcTree, first: str, main: int, namespace: str, up: bool
) -> None:
    (tree.root / "self/ns").mkdir(parents=True)
    (tree.root / "self/ns/pid").symlink_to(namespace)
    tree.add(1, [first], ppid=0, exe=None)
    tree.add(7, ["gpuwhy"], env={})
    state = states_of(ProcessSource(proc=str(tree.root), parent=main).poll(tree.now))
    assert state["processes", None]["up"] is up
    assert up or "PID namespace of its own" in state["processes", None]["why"]


def test_control_groups_out_of_sight_are_reported(tree: ProcTree, tmp_path: Path) -> None:
    tree.add(10, ["python3", "train.py"], env={}, maps=TORCH)
    source = ProcessSource(proc=str(tree.root), cgroup_mount=str(tmp_path / "none"))
    state = states_of(source.poll(time.time()))["cgroup", None]
    assert state["up"] is False
    assert "cgroup: host" in state["remedy"]


def test_ras_addresses_of_the_jobs(tree: ProcTree, source: ProcessSource) -> None:
    env = {"NCCL_RAS_ADDR": "localhost:1234"}
    tree.add(10, ["python3", "train.py"], env=env, maps=TORCH)
    source.poll(time.time())
    assert source.ras_addresses() == {("localhost", 1234)}


def test_namespace_of_a_pod(tree: ProcTree, source: ProcessSource) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "bert-worker-0"}
    tree.add(10, ["python3", "train.py"], env=env, maps=TORCH)
    path = "10/root/var/run/secrets/kubernetes.io/serviceaccount/namespace"
    tree.write(path, "team-a")
    item = table_of(source.poll(time.time()))[10]
    assert (item["run"], item["pod"], item["namespace"]) == (
        "team-a/bert",
        "bert-worker-0",
        "team-a",
    )


def test_a_clock_that_is_set_takes_the_starts_with_it(tree: ProcTree) -> None:
    """A step back by an hour makes nobody younger."""
    booted = 1000.0
    census = Census(str(tree.root), lambda: booted)
    tree.add(10, ["python3", "train.py"], age=100.0)
    before = census.update(tree.now, (), frameworks=True)[10].start
    booted -= 3600.0
    tree.add(11, ["python3", "train.py"], age=50.0)
    table = census.update(tree.now - 3600.0, (), frameworks=True)
    assert table[10].start == before - 3600.0
    assert table[11].start - table[10].start == pytest.approx(50.0, abs=0.1)
    booted += 0.1
    assert census.update(tree.now - 3600.0, (), frameworks=True)[10].start == before - 3600.0


def test_old_processes_of_no_interest_are_seldom_read(
    tree: ProcTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid in range(100, 160):
        tree.add(pid, ["bash"], exe="/bin/bash", age=1000.0)
    census = Census(str(tree.root))
    census.update(time.time(), (), True)
    read: list[str] = []
    real = census_module.procfs.read_stat

    def counted(base: str) -> Any:
        read.append(base)
        return real(base)

    monkeypatch.setattr(census_module.procfs, "read_stat", counted)
    for _ in range(census_module.ROUNDS):
        census.update(time.time(), (), True)
    assert len(read) == 61  # each once


# Real processes

JOB = textwrap.dedent("""
    import sys, time, torch
    from torch.utils.data import DataLoader, Dataset

    class Items(Dataset):
        def __len__(self):
            return 10**6

        def __getitem__(self, i):
            time.sleep(0.005)
            return torch.zeros(4)

    if __name__ == "__main__":
        context = sys.argv[1]
        loader = DataLoader(Items(), 4, num_workers=2, multiprocessing_context=context)
        for batch in loader:
            print("step", flush=True)
            time.sleep(0.01)
""")


@pytest.fixture
def start_job(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts real PyTorch jobs; each has made its first step."""
    script = tmp_path / "train.py"
    script.write_text(JOB)
    jobs: list[subprocess.Popen[str]] = []

    def start(context: str, **env: str) -> subprocess.Popen[str]:
        job = subprocess.Popen(
            [sys.executable, str(script), context],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **env},
            start_new_session=True,
        )
        jobs.append(job)
        assert job.stdout is not None
        assert job.stdout.readline() == "step\n"
        return job

    yield start
    for job in jobs:
        os.killpg(job.pid, 9)
        job.wait()
        assert job.stdout is not None
        job.stdout.close()


def family_of(pid: int, source: ProcessSource, until: Callable[[list[Item]], bool]) -> list[Item]:
    """The members that belong to a rank, once they are as they should be."""
    deadline = time.monotonic() + 30.0
    while True:
        found = table_of(source.poll(time.time())).values()
        family = [item for item in found if item.get("rank_pid") == pid]
        if until(family) or time.monotonic() > deadline:
            return family
        time.sleep(0.3)


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_a_real_job(context: str, start_job: Callable[..., subprocess.Popen[str]]) -> None:
    pytest.importorskip("torch")
    job = start_job(context, GPUWHY_RUN=f"run-{context}")
    source = ProcessSource(parent=os.getpid())

    def complete(family: list[Item]) -> bool:
        workers = [item for item in family if item["role"] == "worker"]
        return len(workers) == 2 and all("cpu" in item for item in family)

    family = family_of(job.pid, source, complete)
    roles = {item["pid"]: item["role"] for item in family}
    assert roles[job.pid] == "rank"
    assert sorted(roles.values()).count("worker") == 2
    assert {item["run"] for item in family} == {f"run-{context}"}
    assert {item["python"] for item in family} == {".".join(platform.python_version_tuple()[:2])}
    rank = next(item for item in family if item["pid"] == job.pid)
    assert abs(rank["start"] - time.time()) < 60
    assert 0 <= rank["run_delay"] <= 1
    assert rank["affinity"] == len(os.sched_getaffinity(job.pid))
    assert rank["rss"] > 50 << 20


def test_the_cost_of_a_poll_is_small() -> None:
    """72 processes: eight ranks with eight workers each, as forks of plain Python."""
    code = "import os, time\nfor i in range(8):\n    if os.fork() == 0: break\ntime.sleep(60)\n"
    ranks = [
        subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
        for _ in range(8)
    ]
    try:
        source = ProcessSource(parent=os.getpid())
        source.jobs.gpu_processes("GPU-1", {rank.pid for rank in ranks})
        deadline = time.monotonic() + 30.0
        while len(table_of(source.poll(time.time()))) < 72 and time.monotonic() < deadline:
            time.sleep(0.3)
        began = time.thread_time()
        for _ in range(5):
            found = table_of(source.poll(time.time()))
        cost = (time.thread_time() - began) / 5
    finally:
        for rank in ranks:
            os.killpg(rank.pid, 9)
            rank.wait()
    assert len(found) == 72
    assert cost < 0.05  # 7 ms on two idle cores


# Other users


def as_nobody(look: Callable[[], Any]) -> Any:
    """What ``look`` finds as a user without rights, in a fork of our own."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(writing, json.dumps(look()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        found = json.loads(pipe.read())
    os.waitpid(pid, 0)
    return found


@pytest.fixture
def plain_job() -> Iterator[subprocess.Popen[bytes]]:
    """A Python process of ours with a rank in its environment."""
    with subprocess.Popen(
        [sys.executable, "-S", "-c", "import time; time.sleep(60)"],
        env={"RANK": "3", "GPUWHY_RUN": "secret-run"},
    ) as job:
        time.sleep(0.3)
        yield job
        job.kill()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")
def test_a_job_of_another_user_that_we_may_not_look_into(
    plain_job: subprocess.Popen[bytes],
) -> None:
    pid = plain_job.pid

    def look() -> Any:
        source = ProcessSource(parent=os.getpid())
        blind = source.poll(time.time() + 5)
        source.jobs.gpu_processes("GPU-1", {pid})
        listed = source.poll(time.time() + 20)
        return blind, listed

    blind, listed = as_nobody(look)
    assert pid not in table_of(blind)
    item = table_of(listed)[pid]
    assert item["role"] == "rank"
    assert item["run"].startswith("-c-")
    assert not {"rank", "read_bytes"} & item.keys()
    assert item["threads"] == 1  # what is public is still told
    refused = states_of(listed)["processes", pid]
    assert refused["up"] is False
    assert "user root" in refused["why"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to look into another user's process")
def test_a_job_of_another_user_that_root_looks_into() -> None:
    sleeper = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    with subprocess.Popen(
        [sleeper, "-S", "-c", "import time; time.sleep(60)"],
        env={"RANK": "3", "GPUWHY_RUN": "theirs"},
        user=65534,
        group=65534,
    ) as job:
        try:
            time.sleep(0.3)
            source = ProcessSource(parent=os.getpid())
            source.jobs.gpu_processes("GPU-1", {job.pid})
            item = table_of(source.poll(time.time() + 5))[job.pid]
        finally:
            job.kill()
    assert (item["run"], item["rank"], item["user"]) == ("theirs", 3, "nobody")
